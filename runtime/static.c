/* What a static program has in place of functions of the C library that would load shared
 * libraries. `ampc --build-line --static` links it. */
#include <dlfcn.h>
#include <pwd.h>
#include <stddef.h>

/* The linker directs calls of dlopen to this function: --wrap=dlopen. */
void *__wrap_dlopen(const char *file, int mode);
void *__wrap_dlopen(const char *file, int mode)
{
  (void)file, (void)mode;
  return NULL;
}

char *dlerror(void)
{
  static char text[] = "a static program loads no libraries";
  return text;
}

/* Who has no HOME has no cache either. */
struct passwd *getpwuid(uid_t user)
{
  (void)user;
  return NULL;
}
