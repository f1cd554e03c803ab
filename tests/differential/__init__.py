"""The differential test: programs run on stock Lightning and with the default patches, and must do the same.

    python -m tests.differential --release 2.6.6 --seeds 0 200
    python -m tests.differential --release 2.6.6 --only gan              # one program, without extensions
    python -m tests.differential --release 2.6.6 --only trainer@17 --show  # also print its trace
    python -m tests.differential --release 2.2.5 --only workarounds      # the programs of one file

A program is a function in a file below ``programs/``, found by its name. To add one, write it:

    from tests.differential.observing import pl

    def my_training(observe):
        model = MyModel()
        pl.Trainer(max_epochs=1, accelerator="cpu").fit(model, ...)
        observe("weight", model.weight)

Its working directory is new and empty. The test records warnings, messages, printed lines, files and the exit status;
`observe` records a value. A program can request more with parameters:

- ``own``: creates objects of user classes, such as ``own(pl.Callback)``. Such a program also runs with these classes
  extended: methods overridden, failing, replaced, wrapped (`KINDS`).
- ``seed``: it is a random program, and runs once for each seed.
- ``process``: it runs twice in the same directory, each time in a new process, with 1 and 2.

A program that differs between two runs on stock is dropped. If it differs with the patches, it runs again with each
patch that it calls into alone. Such a patch may make a difference if the program no longer ends in an error, or if
``known_differences.py`` declares it. Everything else is a finding.
"""
