/* Calls a trained net from C, to classify the first pictures of an IDX file.
 *   clothes WEIGHTS PICTURES [HOW MANY]
 * ampc makes clothes.c and clothes.h from clothes.amp. */
#include <stdio.h>
#include <stdlib.h>
#include "clothes.h"

enum { HEAD = 16, PIXELS = 28 * 28, CLASSES = 10 };
static const char *const names[CLASSES] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                           "sandal",  "shirt",   "sneaker",  "bag",   "boot"};

static int classify(struct ampc_runtime *net, FILE *pictures, int n)
{
  uint8_t image[PIXELS];
  float probability[CLASSES];
  for (int i = 0; i < n && fread(image, PIXELS, 1, pictures) == 1; i++) {
    int status = clothes_classify(net, image, probability), best = 0;
    if (status) return status;
    for (int k = 1; k < CLASSES; k++)
      if (probability[k] > probability[best]) best = k;
    printf("%d: %s %.6f\n", i, names[best], (double)probability[best]);
  }
  return 0;
}

int main(int argc, char **argv)
{
  if (argc < 3) return fprintf(stderr, "usage: %s WEIGHTS PICTURES [HOW MANY]\n", argv[0]), 2;
  FILE *pictures = fopen(argv[2], "rb");
  if (!pictures || fseek(pictures, HEAD, SEEK_SET) != 0) return perror(argv[2]), 3;
  struct ampc_runtime *net = NULL;
  int status = clothes_open("auto", argv[1], NULL, &net);
  if (!status) status = classify(net, pictures, argc > 3 ? atoi(argv[3]) : 10);
  if (status) fprintf(stderr, "%s: %s\n", argv[0], clothes_error());
  clothes_close(net);
  fclose(pictures);
  return status;
}
