/* The members of a zip archive, found through its directory. */
#pragma once
#include <jansson.h>
#include "bytes.h"

typedef struct ZipMember {
  bool deflated; /* else stored */
  uint32_t crc;
  int64_t at;           /* offset of the member's bytes in the archive */
  int64_t packed, size; /* bytes in the archive and unpacked; equal if stored */
} ZipMember;

typedef struct ZipDirectory {
  uint8_t *bytes;
  int64_t size, members;
  json_t *names; /* name -> offset of its entry in `bytes` */
} ZipDirectory;

/* Reads the directory of the open archive `zip`. Call zip_close, also after a failure. */
ampc_status zip_open(const Bytes *zip, ZipDirectory *out);
void zip_close(ZipDirectory *d); /* a zeroed struct is fine */
/* Finds a member by its name. Checks that all sizes are possible in a file of this size. If there
 * is no such name, the message lists those that exist, without `ending`. */
ampc_status zip_member(const Bytes *zip, const ZipDirectory *d, const char *name,
                       const char *ending, ZipMember *out);

/* Reads up to `n` bytes from the start of a member; *out_read is smaller only at its end. */
ampc_status zip_head(const Bytes *zip, const ZipMember *m, void *to, int64_t n, int64_t *out_read);
/* Reads a whole member to *out, which the caller frees, and checks its checksum. */
ampc_status zip_read(const Bytes *zip, const ZipMember *m, uint8_t **out);
