"""A model whose methods have the names of removed hooks, but lose nothing without the call."""


def made_of(kind):
    class Base(kind):
        def on_epoch_start(self):
            """A place for subclasses."""

        def training_step_end(self, output):
            return output

        def on_epoch_end(self):
            self.forget()

        def on_pretrain_routine_end(self):
            self.forget()

        def on_pretrain_routine_start(self):
            self.forget()

        def get_progress_bar_dict(self):
            return {"total": self.total}

    class Others(Base):
        def on_train_epoch_end(self):
            self.on_epoch_end()

        def on_fit_start(self):
            getattr(self, "on_pretrain_routine_end")()  # noqa: B009
            getattr(self, f"on_{self.__dict__.get('routine', 'pretrain')}_routine_start")()

    return Others()
