"""Small programs in the style of research code, which observe their results."""

from __future__ import annotations

import collections
import glob
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from tests.differential.observing import pl

QUIET: dict[str, Any] = {
    "accelerator": "cpu",
    "devices": 1,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def numbers(rows: int, columns: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


class LanguageModel(pl.LightningModule):
    """A small transformer with warm-up, decay for some weights only, and perplexity."""

    def __init__(self, words: int = 11, width: int = 8, warmup: int = 3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def loss(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1] - 1)
        return functional.cross_entropy(
            self.head(self.body(self.embed(tokens[:, :-1]), mask)).transpose(1, 2), tokens[:, 1:]
        )

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch[0])
        self.log_dict({"loss": loss, "perplexity": loss.exp()}, prog_bar=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", self.loss(batch[0]))

    def configure_optimizers(self) -> Any:
        decays = [p for p in self.parameters() if p.ndim > 1]
        others = [p for p in self.parameters() if p.ndim <= 1]
        groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=0.01)
        warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / self.hparams["warmup"]))
        return [optimizer], [{"scheduler": warm, "interval": "step"}]


def language_model(observe: Any, process: int) -> None:
    """Train, and continue in another process from the last checkpoint."""
    pl.seed_everything(3, workers=True)
    tokens = TensorDataset(torch.randint(11, (16, 7), generator=torch.Generator().manual_seed(1)))
    best = pl.callbacks.ModelCheckpoint("kept", monitor="val_loss", save_last=True, save_top_k=2)
    callbacks = [best, pl.callbacks.LearningRateMonitor("step"), pl.callbacks.EarlyStopping("val_loss", patience=3)]
    options = {
        "accumulate_grad_batches": 2,
        "gradient_clip_val": 1.0,
        "log_every_n_steps": 1,
        "max_epochs": 2 * process,
    }
    logger = pl.loggers.CSVLogger("logs", version=process)
    trainer = pl.Trainer(**QUIET, **options, callbacks=callbacks, logger=logger)
    model = LanguageModel()
    path = "kept/last.ckpt" if process == 2 else None
    trainer.fit(model, DataLoader(tokens, 4, shuffle=True), DataLoader(tokens, 8), ckpt_path=path)
    observe("weights", list(model.parameters()))
    observe("evaluated", trainer.validate(dataloaders=DataLoader(tokens, 8), ckpt_path="best", verbose=False))
    for path in sorted(glob.glob("kept/*.ckpt")):
        observe(path, dict(LanguageModel.load_from_checkpoint(path).hparams))


class Replay(IterableDataset[Any]):
    """A replay buffer that the agent fills."""

    def __init__(self) -> None:
        self.kept: Any = collections.deque(maxlen=32)

    def __iter__(self) -> Any:
        while True:
            yield self.kept[torch.randint(len(self.kept), ()).item()]


class Agent(pl.LightningModule):
    """Q-learning with a target network that lags behind."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.target = nn.Linear(6, 2), nn.Linear(6, 2).requires_grad_(False)
        self.memory = Replay()
        for _ in range(8):
            self.act()

    def act(self) -> None:
        state = torch.randn(6)
        action = int(self.net(state).argmax())
        self.memory.kept.append((state, action, float(state[action])))

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        state, action, reward = batch
        self.act()
        chosen = self.net(state).gather(1, action[:, None]).squeeze(1)
        loss = functional.smooth_l1_loss(chosen, reward.float() + 0.9 * self.target(state).max(1).values)
        if self.global_step % 3 == 0:
            self.target.load_state_dict(self.net.state_dict())
        self.log("kept", len(self.memory.kept), on_epoch=True)
        self.log("rewards", reward.float().sum(), reduce_fx="sum", on_step=True, on_epoch=True)
        return loss

    def train_dataloader(self) -> Any:
        return DataLoader(self.memory, 4)

    def configure_optimizers(self) -> Any:
        return torch.optim.RMSprop(self.net.parameters(), 0.01)


def q_learning(observe: Any) -> None:
    model = Agent()
    trainer = pl.Trainer(**QUIET, max_steps=9, logger=pl.loggers.CSVLogger("logs"), log_every_n_steps=2)
    trainer.fit(model)
    observe("metrics", dict(trainer.callback_metrics))
    observe("weights", list(model.parameters()))
