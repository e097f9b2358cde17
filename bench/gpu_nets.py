"""Nets that only bench/gpu_peer.py measures, with the names of the parameters in models/, their losses and optimizers."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, c, heads, p):
        super().__init__()
        self.heads, self.c_attn, self.c_proj, self.p = heads, nn.Linear(c, 3 * c), nn.Linear(c, c), p

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=True)
        return F.dropout(self.c_proj(y.transpose(1, 2).flatten(2)), self.p)


class FeedForward(nn.Module):
    def __init__(self, c, p):
        super().__init__()
        self.c_fc, self.c_proj, self.p = nn.Linear(c, 4 * c), nn.Linear(4 * c, c), p

    def forward(self, x):
        return F.dropout(self.c_proj(F.gelu(self.c_fc(x), approximate="tanh")), self.p)


class Layer(nn.Module):
    def __init__(self, c, heads, p):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(c), Attention(c, heads, p)
        self.ln_2, self.mlp = nn.LayerNorm(c), FeedForward(c, p)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """models/gpt2/gpt2.amp with P=p. nanoGPT and llm.c train without dropout."""
    LENGTH, WORDS = 1024, 50257

    def __init__(self, p, c=768, layers=12, heads=12):
        super().__init__()
        self.p = p
        self.wte, self.wpe = nn.Embedding(self.WORDS, c), nn.Embedding(self.LENGTH, c)
        self.h = nn.ModuleList(Layer(c, heads, p) for _ in range(layers))
        self.ln_f = nn.LayerNorm(c)

    def forward(self, ids):
        x = F.dropout(self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device)), self.p)
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight).flatten(0, 1)

    def loss(self, ids):
        return F.cross_entropy(self(ids[:, :-1]), ids[:, 1:].flatten().long())


def double_conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    """models/unet/unet.amp."""

    def __init__(self, c=64, depth=4, classes=2):
        super().__init__()
        at = [c * 2 ** i for i in range(depth + 1)]
        self.down = nn.ModuleList(double_conv(at[i - 1] if i else 1, at[i]) for i in range(depth))
        self.mid = double_conv(at[depth - 1], at[depth])
        self.grow = nn.ModuleList(nn.ConvTranspose2d(at[i + 1], at[i], 2, stride=2) for i in range(depth))
        self.up = nn.ModuleList(double_conv(at[i + 1], at[i]) for i in range(depth))
        self.out = nn.Conv2d(c, classes, 1)

    def forward(self, x):
        skip = []
        for down in self.down:
            x = down(x)
            skip.append(x)
            x = F.max_pool2d(x, 2)
        x = self.mid(x)
        for i in reversed(range(len(self.up))):
            x = self.up[i](torch.cat([skip[i], self.grow[i](x)], dim=1))
        return self.out(x)

    def loss(self, images, masks):
        x = (images.float() / 255 - 0.5).to(memory_format=torch.channels_last)
        return F.cross_entropy(self(x), masks.long())


class Bert(nn.Module):
    """models/bert_large/bert_large.amp: Hugging Face's BertForPreTraining, on tokens that are masked anew in each step."""
    WORDS, LENGTH, CLS, SEP, MASK = 30522, 512, 101, 102, 103

    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertForPreTraining
        config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
        self.net = BertForPreTraining(config)

    def load_state_dict(self, state):
        self.net.load_state_dict(state, strict=False)

    def state_dict(self):
        """Without the decoder, whose weight is the embedding's."""
        return {key: t for key, t in self.net.state_dict().items() if ".decoder." not in key}

    def loss(self, ids, segment, follows):
        special = (ids == 0) | (ids == self.CLS) | (ids == self.SEP)
        chosen, how = (torch.rand(ids.shape, device=ids.device) for _ in range(2))
        other = torch.where(how < 0.9, torch.randint_like(ids, self.WORDS), ids).masked_fill(how < 0.8, self.MASK)
        hidden = (chosen < 0.15) & ~special
        said, order = self.net(torch.where(hidden, other, ids), (ids != 0).long(), segment.int(), return_dict=False)[:2]
        target = ids.long().masked_fill(~hidden, -100)
        return F.cross_entropy(said.flatten(0, 1), target.flatten()) + F.cross_entropy(order, follows)


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2019, arXiv:1904.00962) with the operations for lists of tensors that PyTorch's own optimizers use."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            w = [p for p in group["params"] if p.grad is not None]
            g, state, (one, two) = [p.grad for p in w], self.state, group["betas"]
            for p in w:
                if not state[p]:
                    state[p] = {"m": torch.zeros_like(p), "v": torch.zeros_like(p)}
            group["steps"] = group.get("steps", 0) + 1
            m, v = ([state[p][key] for p in w] for key in "mv")
            torch._foreach_lerp_(m, g, 1 - one)
            torch._foreach_mul_(v, two)
            torch._foreach_addcmul_(v, g, g, 1 - two)
            root = torch._foreach_sqrt(torch._foreach_div(v, 1 - two ** group["steps"]))
            torch._foreach_add_(root, group["eps"])
            update = torch._foreach_div(torch._foreach_div(m, 1 - one ** group["steps"]), root)
            torch._foreach_add_(update, w, alpha=group["weight_decay"])
            if group["weight_decay"]:
                ratio = torch._foreach_div(torch._foreach_norm(w), torch._foreach_norm(update))
                torch._foreach_mul_(update, [torch.nan_to_num(r, 1.0, 1.0, 1.0) for r in ratio])
            torch._foreach_add_(w, update, alpha=-group["lr"])


TOKENS = [((GPT2.LENGTH + 1,), torch.int32)]
TEXTS = [((Bert.LENGTH,), torch.int32), ((Bert.LENGTH,), torch.uint8), ((), torch.int64)]
CELLS = [((1, 512, 512), torch.uint8), ((512, 512), torch.uint8)]


def decayed(net, without, decay):
    """Two groups of parameters: with weight decay, and without, if the name has one of the words."""
    named = [(any(word in key for word in without), p) for key, p in net.named_parameters()]
    return [{"params": [p for free, p in named if not free], "weight_decay": decay},
            {"params": [p for free, p in named if free], "weight_decay": 0.0}]


def make_gpt2(p=0.0):
    net = GPT2(p)
    opt = torch.optim.AdamW(decayed(net, (".bias", ".ln_"), 0.1), lr=6e-4, betas=(0.9, 0.95))
    return net, opt, lambda step: min(step / 2000, 1.0), 1.0


def make_bert():
    net = Bert()
    return net, Lamb(decayed(net, (".bias", "LayerNorm"), 0.01), lr=4e-4), lambda step: min(step / 3125, 1.0), 1.0


def make_unet():
    net = UNet()
    return net, torch.optim.Adam(net.parameters(), lr=1e-4), lambda step: 1.0, None


# For each net: net, optimizer, factor of the learning rate at a step, clip_norm; and the sources of a batch.
NETS = {"gpt2": (make_gpt2, TOKENS), "gpt2_dropout": (lambda: make_gpt2(0.1), TOKENS), "bert_large": (make_bert, TEXTS), "unet": (make_unet, CELLS)}
