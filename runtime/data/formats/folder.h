/* A folder of pictures: each of its folders is a class, and the files there and in folders within
 * it are its samples. Also a single picture. */
#pragma once
#include "ampc_plan.h"

#define FOLDER_READS ".jpg, .jpeg, .png, .bmp, .webp, .tif and .tiff"
enum { FOLDER_ENDS = 8 /* different endings of other files that are told apart */ };

typedef struct FolderFile {
  const char *name; /* name in the folder of its class: "1.jpg", "more/1.jpg" */
  int32_t class;
  int32_t rank; /* position among the files of its class, sorted by folder and name */
} FolderFile;

typedef struct FolderOther { /* files that are not read, because of the end of their names */
  char end[12];              /* ".txt", in lower case; "": none; of the last one "*": any */
  int64_t n;
} FolderOther;

typedef struct Folder {
  const char *root; /* the folder that contains the classes */
  int64_t n, classes;
  FolderFile *files;               /* in the order of samples */
  const char **class;              /* names of the classes, in the order of labels */
  int64_t *size;                   /* number of files of each class */
  int64_t **members;               /* [class][rank]: index into files */
  void *memory;                    /* memory that holds all names */
  FolderOther others[FOLDER_ENDS]; /* files that are not read */
} Folder;

/* Whether a file is a picture by its name, which is not hidden. */
bool folder_is_picture(const char *name);
/* Lists the pictures: files whose names end as FOLDER_READS says. `args` may name the classes (a
 * line `class` each), in the order of labels; otherwise they are all folders, sorted. The samples
 * of each class are spread evenly over all samples. A class without pictures is an error. If `path`
 * is a picture, it is the only sample, of class ".", which stands for `root` itself. */
ampc_status folder_list(const char *path, const char *args, Folder *out);
/* Writes "2 .bmp, 1 .txt" for the files that are not read; returns their number. */
int64_t folder_others(const Folder *f, char *to, size_t size);
void folder_free(Folder *f); /* a zeroed struct is fine, also after a failure */
