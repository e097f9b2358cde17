/* A folder of pictures: each of its folders is a class, and the files there are its samples. Also a
 * single picture. */
#pragma once
#include "ampc_plan.h"

typedef struct FolderFile {
  const char *name; /* name in the folder of its class */
  int32_t class;
  int32_t rank; /* position among the files of its class, sorted by name */
} FolderFile;

typedef struct Folder {
  const char *root; /* the folder that contains the classes */
  int64_t n, classes;
  FolderFile *files;  /* in the order of samples */
  const char **class; /* names of the classes, in the order of labels */
  int64_t *size;      /* number of files of each class */
  int64_t **members;  /* [class][rank]: index into files */
  void *memory;       /* memory that holds all names */
} Folder;

/* Lists the pictures: files whose names end in .jpg, .jpeg or .png. `args` may name the classes (a
 * line `class` each), in the order of labels; otherwise they are all folders, sorted. The samples
 * of each class are spread evenly over all samples. A class without pictures is an error. If `path`
 * is a picture, it is the only sample, of class ".", which stands for `root` itself. */
ampc_status folder_list(const char *path, const char *args, Folder *out);
void folder_free(Folder *f); /* a zeroed struct is fine, also after a failure */
