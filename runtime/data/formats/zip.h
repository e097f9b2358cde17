/* The members of a zip archive, read through its directory. */
#pragma once
#include "bytes.h"

typedef struct ZipMember {
  bool deflated; /* else stored */
  uint32_t crc;
  int64_t at;           /* of its bytes in the archive */
  int64_t packed, size; /* bytes in the archive, and unpacked; equal when stored */
} ZipMember;

/* Finds a member by its name. All sizes are ones that the archive has room for. The message for a
 * name that is not there lists those that are, without their ending. `zip` is the open file. */
ampc_status zip_find(const Bytes *zip, const char *name, const char *ending, ZipMember *out);

/* The first bytes of a member, up to `n`; *out_read is less only at its end. */
ampc_status zip_head(const Bytes *zip, const ZipMember *m, void *to, int64_t n, int64_t *out_read);
/* All of it into *out, which the caller frees; checked against its checksum. */
ampc_status zip_read(const Bytes *zip, const ZipMember *m, uint8_t **out);
