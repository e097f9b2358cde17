/* Reads cubins: see cubin.h. Section .nv.info is a list of attributes: a byte for the format, a
 * byte for the attribute's number, and 16 bits for the value or, with format 4, for the size of the
 * bytes after them. */
#include "cubin.h"
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT_BYTES = 4, ATTRIBUTE_FRAME_SIZE = 0x11, ATTRIBUTE_REGISTERS = 0x2f };

typedef struct Cubin {
  const char *bytes;
  size_t size;
  const Elf64_Ehdr *head;
  const Elf64_Shdr *sections;
} Cubin;

static const void *part(const Cubin *c, uint64_t offset, uint64_t size)
{
  return offset <= c->size && size <= c->size - offset ? c->bytes + offset : NULL;
}

static bool open_cubin(const char *bytes, size_t size, Cubin *out)
{
  *out = (Cubin){.bytes = bytes, .size = size};
  out->head = part(out, 0, sizeof *out->head);
  if (!out->head || memcmp(out->head->e_ident, ELFMAG, SELFMAG) != 0) return false;
  out->sections =
      part(out, out->head->e_shoff, (uint64_t)out->head->e_shnum * sizeof *out->sections);
  return out->sections && out->head->e_shstrndx < out->head->e_shnum;
}

static const char *string_at(const Cubin *c, const Elf64_Shdr *table, uint64_t at)
{
  const char *s = part(c, table->sh_offset, table->sh_size);
  return s && at < table->sh_size && memchr(s + at, 0, table->sh_size - at) ? s + at : "";
}

static const Elf64_Shdr *find_section(const Cubin *c, const char *name)
{
  const Elf64_Shdr *names = &c->sections[c->head->e_shstrndx];
  for (unsigned i = 0; i < c->head->e_shnum; i++)
    if (strcmp(string_at(c, names, c->sections[i].sh_name), name) == 0) return &c->sections[i];
  return NULL;
}

static const char *symbol_name(const Cubin *c, uint32_t index)
{
  const Elf64_Shdr *table = find_section(c, ".symtab"), *names = find_section(c, ".strtab");
  if (!table || !names) return "";
  const Elf64_Sym *s =
      part(c, table->sh_offset + (uint64_t)index * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
  return s ? string_at(c, names, s->st_name) : "";
}

/* Finds the kernel's attribute, which is a pair of a symbol and a number. */
static bool find_attribute(const Cubin *c, const char *kernel, int attribute, unsigned *out)
{
  const Elf64_Shdr *info = find_section(c, ".nv.info");
  const uint8_t *s = info ? part(c, info->sh_offset, info->sh_size) : NULL;
  if (!s) return false;
  for (size_t at = 0; at + 4 <= info->sh_size;) {
    size_t size = s[at] == FORMAT_BYTES ? (size_t)(s[at + 2] | s[at + 3] << 8) : 0;
    uint32_t pair[2];
    if (s[at + 1] == attribute && size == sizeof pair && at + 4 + size <= info->sh_size) {
      memcpy(pair, s + at + 4, sizeof pair);
      *out = pair[1];
      if (strcmp(symbol_name(c, pair[0]), kernel) == 0) return true;
    }
    at += 4 + size;
  }
  return false;
}

bool cubin_needs(const char *bytes, size_t size, const char *kernel, KernelNeeds *out)
{
  Cubin c;
  char name[256];
  *out = (KernelNeeds){0};
  if (!open_cubin(bytes, size, &c)) return false;
  snprintf(name, sizeof name, ".nv.shared.%s", kernel);
  const Elf64_Shdr *shared = find_section(&c, name);
  if (shared) out->shared = (unsigned)shared->sh_size;
  return find_attribute(&c, kernel, ATTRIBUTE_REGISTERS, &out->registers) &&
         find_attribute(&c, kernel, ATTRIBUTE_FRAME_SIZE, &out->local);
}
