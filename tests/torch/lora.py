#!/usr/bin/env python3
"""lora.py AMP: LoRA of `adapt` and of PEFT.

A net with an adapter that PEFT has drawn and saved trains 10 steps in both: the losses agree within their printed digits. Then
PEFT loads what amp has saved: results agree within 1e-5 of the largest. LoRA with several ranks, rsLoRA, and a layer
that trains beside it (modules_to_save), frozen weights in int8 and nf4. Skipped (77) without PyTorch, peft and safetensors."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from safetensors.torch import save_file
    from torch import nn
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

AMP = Path(sys.argv[1]).resolve()
JOB = """
module Net() {
  fc1 = Linear(16, 32); fc2 = Linear(32, 32); head = Linear(32, 4)
  def forward(x) { return head(relu(fc2(relu(fc1(x))))) }
}
model net = Net() { load("base.safetensors"); CLAUSES }
optimizer opt = SGD(net, lr=0.1)
data d() { return npy("x.npy"), npy("y.npy") }
train x, y in d() with batch=32, shuffle=false { minimize cross_entropy(net(x), y) with opt }
infer f(x: f32[320, 16]) { return net(x) }
"""
CASES = {
    "one rank": ('adapt(LoRA, "{fc1,fc2}", rank=4, alpha=8)', dict(r=4, lora_alpha=8, target_modules=["fc1", "fc2"])),
    "two ranks, rsLoRA": ('adapt(LoRA, "fc1", rank=4, alpha=8, rslora=true); adapt(LoRA, "fc2", rank=2, alpha=3, rslora=true)',
                          dict(r=4, lora_alpha=8, target_modules=["fc1", "fc2"], use_rslora=True,
                               rank_pattern={"fc2": 2}, alpha_pattern={"fc2": 3})),
    "a head beside": ('adapt(LoRA, "fc1", rank=3, alpha=2); unfreeze("head")',
                      dict(r=3, lora_alpha=2, target_modules=["fc1"], modules_to_save=["head"])),
    "quantized": ('store(int8, "fc1.weight"); store(nf4, "fc2.weight"); adapt(LoRA, "{fc1,fc2}", rank=4, alpha=8)',
                  dict(r=4, lora_alpha=8, target_modules=["fc1", "fc2"])),
}


def quantize(net):
    """Replaces the weights of fc1 by those of int8, and the weights of fc2 by those of nf4: the nearest of 16 quantiles."""
    with torch.no_grad():
        w = net.fc1.weight
        most = w.abs().amax(1, keepdim=True)
        w.copy_(torch.round(w * (127 / most)) / 127 * most)
        above = torch.special.ndtri(torch.linspace(0.9677083, 0.5, 9, dtype=torch.float64)[:-1])
        below = -torch.special.ndtri(torch.linspace(0.9677083, 0.5, 8, dtype=torch.float64)[:-1])
        values = torch.cat([below, torch.zeros(1), above.flip(0)]).float() / above.max()
        blocks = net.fc2.weight.view(-1, 64)
        most = blocks.abs().amax(1, keepdim=True)
        nearest = (blocks[..., None] / most[..., None] - values).abs().argmin(-1)
        blocks.copy_(values[nearest] * most)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.head(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def amp(*args):
    done = subprocess.run([AMP, *args], capture_output=True, text=True, cwd=folder)
    if done.returncode:
        sys.exit(f"amp {' '.join(args)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def train_peft(model, x, y):
    losses = []
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for i in range(10):
        loss = nn.functional.cross_entropy(model(x[32 * i:32 * i + 32]), y[32 * i:32 * i + 32])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return np.array(losses)


def check(name, clauses, config):
    base = Net()
    save_file(base.state_dict(), folder / "base.safetensors")
    if name == "quantized":
        quantize(base)
    fresh = Net()
    fresh.load_state_dict(base.state_dict())
    model = get_peft_model(base, LoraConfig(**config))
    for key, p in model.named_parameters():
        if "lora_B" in key:
            nn.init.normal_(p, std=0.1)
    model.save_pretrained(folder / "drawn")
    clauses += '; load("drawn/adapter_model.safetensors", adapter=true)'
    (folder / "job.amp").write_text(JOB.replace("CLAUSES", clauses))
    x, y = torch.randn(320, 16), torch.randint(0, 4, (320,))
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "y.npy", y.numpy())
    out = amp("train", "--log", "1", "--device", "cpu", "--save-weights", "adapter_model.safetensors", "job.amp")
    ours = np.array([float(s) for s in re.findall(r"loss ([0-9.e-]+)", out)])
    theirs = train_peft(model, x, y)
    assert len(ours) == 10, out
    error = np.abs(ours / theirs - 1).max()
    loaded = PeftModel.from_pretrained(fresh, folder).eval()
    amp("infer", "-q", "--device", "cpu", "--weights", "adapter_model.safetensors", "--input", "x.npy", "--output",
        "ours.npy", "job.amp")
    result = loaded(x).detach().numpy()
    far = np.abs(np.load(folder / "ours.npy") - result).max() / np.abs(result).max()
    moved = np.abs(result - model.eval()(x).detach().numpy()).max() / np.abs(result).max()
    print(f"{name}: losses differ by {error:.1e}, results of PEFT with our adapter by {far:.1e}, with its own {moved:.1e}")
    return error < 1e-4 and far < 1e-5 and moved < 1e-5


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    good = [check(case, *what) for case, what in CASES.items()]
sys.exit(not all(good))
