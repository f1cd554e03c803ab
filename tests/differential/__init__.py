"""The differential test: programs run on stock Lightning and with the default patches, and must do the same.

    python -m tests.differential --release 2.6.6 --seeds 0 200
    python -m tests.differential --release 2.6.6 --only gan              # one program, as it stands
    python -m tests.differential --release 2.6.6 --only trainer@17 --show  # and what it did

A program is a function in a file below ``programs/``, found by its name. To add one, write it:

    from tests.differential.observing import pl

    def my_training(observe):
        model = MyModel()
        pl.Trainer(max_epochs=1, accelerator="cpu").fit(model, ...)
        observe("weight", model.weight)

Its working directory is new and empty. Warnings, messages, what is printed, files, how it ends are noted without its
doing; `observe` notes a value. Whatever else it needs, it names as a parameter:

- ``own``: makes the objects of a program's own classes, as ``own(pl.Callback)``. Such a program also runs with these
  classes extended: methods overridden, failing, replaced, wrapped (`KINDS`).
- ``seed``: it is a random program, and runs once for each seed.
- ``process``: it runs twice in the same directory, in a process of its own each time, with 1 and 2.

A script that runs by itself and prints what it saw is listed in `SCRIPTS`.

A program that differs from itself on stock is dropped. One that differs with the patches is run with each patch alone
that it calls into. Such a patch may differ where the program no longer dies of an error, or as ``by_design.py`` says.
Anything else is a finding.
"""
