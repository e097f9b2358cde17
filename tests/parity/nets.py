"""Models of models/ in PyTorch, with the same parameter names, for types.tsv (make_table.py) and bench/cast_bytes.py.

Each entry of NETS has a net and its loss on a batch of the job's size. The numbers do not matter: tensors are fake."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

from generative_nets import VAE  # tests/torch


# ---- GPT-2 ----------------------------------------------------------------------------------------------

class Attention(nn.Module):
    def __init__(self, c, heads, p):
        super().__init__()
        self.heads, self.p, self.c_attn, self.c_proj = heads, p, nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=True)
        return F.dropout(self.c_proj(y.transpose(1, 2).flatten(2)), self.p)


class MLP(nn.Module):
    def __init__(self, c, p):
        super().__init__()
        self.p, self.c_fc, self.c_proj = p, nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        return F.dropout(self.c_proj(F.gelu(self.c_fc(x), approximate="tanh")), self.p)


class Block(nn.Module):
    def __init__(self, c, heads, p):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(c), Attention(c, heads, p), nn.LayerNorm(c), MLP(c, p)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, layers=12, heads=12, c=768, length=1024, words=50257, p=0.1):
        super().__init__()
        self.p, self.wte, self.wpe = p, nn.Embedding(words, c), nn.Embedding(length, c)
        self.h = nn.ModuleList(Block(c, heads, p) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(c), nn.Linear(c, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = F.dropout(self.wte(ids) + self.wpe(torch.arange(ids.shape[1])), self.p)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


# ---- BERT -----------------------------------------------------------------------------------------------

def tree(**modules):
    """A module that only holds other modules, so that the names of parameters are paths."""
    module = nn.Module()
    for name, child in modules.items():
        module.add_module(name, child)
    return module


def norm(c):
    return nn.LayerNorm(c, eps=1e-12)


def bert_layer(c):
    return tree(attention=tree(self=tree(query=nn.Linear(c, c), key=nn.Linear(c, c), value=nn.Linear(c, c)),
                               output=tree(dense=nn.Linear(c, c), LayerNorm=norm(c))),
                intermediate=tree(dense=nn.Linear(c, 4 * c)), output=tree(dense=nn.Linear(4 * c, c), LayerNorm=norm(c)))


class BERT(nn.Module):
    def __init__(self, vocab=30522, c=1024, depth=24, heads=16, p=0.1):
        super().__init__()
        self.heads, self.p = heads, p
        embeddings = tree(word_embeddings=nn.Embedding(vocab, c), position_embeddings=nn.Embedding(512, c),
                          token_type_embeddings=nn.Embedding(2, c), LayerNorm=norm(c))
        self.bert = tree(embeddings=embeddings, encoder=tree(layer=nn.ModuleList(bert_layer(c) for _ in range(depth))),
                         pooler=tree(dense=nn.Linear(c, c)))
        decoder = nn.Linear(c, vocab)
        decoder.weight = embeddings.word_embeddings.weight
        self.cls = tree(predictions=tree(transform=tree(dense=nn.Linear(c, c), LayerNorm=norm(c)), decoder=decoder),
                        seq_relationship=nn.Linear(c, 2))

    def block(self, layer, x, mask):
        attention, output = layer.attention.self, layer.attention.output
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for f in (attention.query, attention.key, attention.value))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.p).transpose(1, 2).flatten(2)
        x = output.LayerNorm(F.dropout(output.dense(y), self.p) + x)
        y = layer.output.dense(F.gelu(layer.intermediate.dense(x)))
        return layer.output.LayerNorm(F.dropout(y, self.p) + x)

    def forward(self, ids, segment):
        e = self.bert.embeddings
        x = e.word_embeddings(ids) + e.position_embeddings.weight[:ids.shape[1]] + e.token_type_embeddings(segment)
        x = F.dropout(e.LayerNorm(x), self.p)
        mask = (ids != 0).view(len(ids), 1, 1, -1)
        for layer in self.bert.encoder.layer:
            x = self.block(layer, x, mask)
        whole = torch.tanh(self.bert.pooler.dense(x[:, 0]))
        transform = self.cls.predictions.transform
        words = self.cls.predictions.decoder(transform.LayerNorm(F.gelu(transform.dense(x))))
        return words, self.cls.seq_relationship(whole)


# ---- the losses ---------------------------------------------------------------------------------------

def ids(*shape):
    return torch.empty(shape, dtype=torch.int64)


def image_loss(n):
    return lambda net: F.cross_entropy(net(torch.empty(n, 3, 224, 224)), ids(n), label_smoothing=0.1)


def gpt2_loss(net):
    return F.cross_entropy(net(ids(16, 1024)).flatten(0, 1), ids(16 * 1024))


def bert_loss(net):
    words, follows = net(ids(16, 512), ids(16, 512))
    return F.cross_entropy(words.flatten(0, 1), ids(16 * 512)) + F.cross_entropy(follows, ids(16))


def vae_loss(net):
    return net.loss(torch.empty(128, 28, 28).view(128, 1, 28, 28), torch.empty(128, 20))


NETS = {  # job: function that makes the net, its loss
    "gpt2/gpt2": (GPT2, gpt2_loss),
    "bert_large/bert_large": (BERT, bert_loss),
    "resnet50/resnet50": (torchvision.models.resnet50, image_loss(256)),
    "resnet18/resnet18": (torchvision.models.resnet18, image_loss(256)),
    "vit_b_16/vit_b_16": (torchvision.models.vit_b_16, image_loss(256)),
    "efficientnet_b0/efficientnet_b0": (torchvision.models.efficientnet_b0, image_loss(256)),
    "vae/vae": (lambda: VAE(20, 400), vae_loss),
}
PRECISIONS = "f16", "bf16"


def layer_types(job, precision):
    """{parameter: types of the results of the layers that have it}, in the order of the calls; also `loss` and `gradients`."""
    make, loss_of = NETS[job]
    net, types = make().train(), {}
    names = {id(p): name for name, p in net.named_parameters()}

    def note(module, _, given):
        given = given[0] if isinstance(given, tuple) else given
        for key, p in module.named_parameters(recurse=False):
            if key.endswith("weight"):
                types.setdefault(names[id(p)], []).append(given.dtype)
    for module in net.modules():
        module.register_forward_hook(note)
    with torch.enable_grad():
        with torch.autocast("cuda", dtype=precision):
            loss = loss_of(net)
        loss.backward()
    types["loss"] = [loss.dtype]
    types["gradients"] = sorted({p.grad.dtype for p in net.parameters()}, key=str)
    return types
