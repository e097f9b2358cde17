/* A folder of pictures: each of its folders is a class, whose files are its samples. Or a picture.
 */
#pragma once
#include "ampc_plan.h"

typedef struct FolderFile {
  const char *name; /* within the class's folder */
  int32_t class;
  int32_t rank; /* among the files of its class, which follow each other by name */
} FolderFile;

typedef struct Folder {
  const char *root; /* where the folders of classes are */
  int64_t n, classes;
  FolderFile *files;  /* in the order of samples */
  const char **class; /* names, in the order of labels */
  int64_t *size;      /* files of each class */
  int64_t **members;  /* [class][rank]: index into files */
  void *memory;       /* of all names */
} Folder;

/* Lists the pictures: files that end in .jpg, .jpeg or .png. `args` may name the classes (a line
 * `class` each), in the order of labels; else they are all folders, in sorted order. Samples are in
 * an order in which each range has its share of each class. A class without pictures is refused.
 * Where `path` is a picture, that is the one sample of class ".", which names `root` itself. */
ampc_status folder_list(const char *path, const char *args, Folder *out);
void folder_free(Folder *f); /* also one of all zeros, or after a failure */
