"""Distil a teacher into a student with Fabric, on two processes."""

import torch
from lightning.fabric import Fabric


class Distillation(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = torch.nn.Linear(8, 4).requires_grad_(False)
        self.student = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.student(x)


if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(1)
    model = Distillation()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.student.parameters(), lr=0.1))

    torch.manual_seed(fabric.global_rank)  # each process has its own share of the data
    x = torch.randn(16, 8)
    loss = torch.nn.functional.mse_loss(model.student(x), model.teacher(x))
    fabric.backward(loss)

    norms = fabric.all_gather(model.student.weight.grad.norm())
    fabric.print("gradient norm on each process:", *(f"{norm:.6f}" for norm in norms.tolist()))
    optimizer.step()
