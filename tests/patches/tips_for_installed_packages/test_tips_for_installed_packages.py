from tests.support.programs import Program, sees

PROGRAM = Program("tips-for-installed-packages", "2.6.6")
test_tips_for_other_packages_are_unchanged = PROGRAM.unchanged(
    "missing", check=sees(lambda seen: seen["tips"] == ["litlogger", "litmodels"])
)
test_only_the_tip_for_the_installed_package_is_left_out = PROGRAM.fixed(
    "one",
    bug=sees(lambda seen: "litlogger" in seen["tips"]),
    right=sees(lambda seen: seen["tips"] == ["litmodels"] and seen["filters"] == 0),
)

PROOFS = PROGRAM.proofs(sees(lambda seen: seen["tips"] == ["litlogger", "litmodels"]), recommended="quiet")
