/* The pickles of torch.save, read as data: tensors, dictionaries, lists, numbers and text. Nothing
 * in a pickle is executed. An object of any other class is opaque. */
#pragma once
#include "ampc_rt.h"

typedef enum PickleKind {
  PICKLE_other, /* a value that no tensor needs: none, a float, bytes, a set */
  PICKLE_mark,
  PICKLE_number,
  PICKLE_text,
  PICKLE_list,
  PICKLE_tuple,
  PICKLE_dict,
  PICKLE_global,  /* a class or function; its cells: texts of its module and its name */
  PICKLE_opaque,  /* an object of an unknown class; its cell: the class, or another callee */
  PICKLE_storage, /* its cells: "storage", type, key, device, elements */
  PICKLE_tensor   /* its cells: storage, offset, sizes, strides, .. */
} PickleKind;

/* Items refer to each other by index, so a pickle may be nested to any depth, or contain itself. */
typedef struct PickleItem {
  PickleKind kind;
  bool seen;            /* for the reader of the items */
  uint32_t first, last; /* cells of a container; 0: it is empty */
  int64_t number;       /* of a text: its length; of a global: its row, or -1 */
  const char *text;     /* in the bytes of the pickle, not NUL-terminated */
} PickleItem;

typedef struct PickleCell { /* an element of a container */
  uint32_t key, value;      /* items; only dictionaries have keys */
  uint32_t next;            /* 0: it is the last one */
} PickleCell;

typedef struct Pickle {
  const char *path; /* for messages */
  const uint8_t *bytes;
  int64_t size, at;
  PickleItem *items;
  PickleCell *cells;
  uint32_t *stack, *memo; /* items */
  uint32_t n_items, n_cells, n_stack, n_memo;
  uint32_t room_items, room_cells, room_stack, room_memo;
  uint32_t root; /* the item that the pickle describes */
} Pickle;

enum { PICKLE_MOST = 32 << 20 /* bytes of a pickle */ };

/* Reads a pickle of up to PICKLE_MOST bytes; out->at is where it ends. The caller keeps `bytes`,
 * and calls pickle_free also after a failure. */
ampc_status pickle_read(const char *path, const uint8_t *bytes, int64_t size, Pickle *out);
void pickle_free(Pickle *p);
/* Returns element i of a container; NULL: it has no such element. */
const PickleItem *pickle_element(const Pickle *p, const PickleItem *container, uint32_t i);
/* Writes the name of a global, or of the class of an opaque item, to `to`; "?" if it has none. */
void pickle_class(const Pickle *p, const PickleItem *item, char *to, size_t room);
/* Returns the type of a storage class as safetensors names it: "F32". NULL: another global. */
const char *pickle_type(const PickleItem *global);
