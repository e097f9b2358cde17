/* Templates of chats: records of a prompt and an answer, or of messages, as ids. */
#pragma once
#include "runtime/data/tokenizer/tokenizer.h"

typedef struct Chat Chat;

/* Reads a template: the name of one, or a text with {prompt} and {answer}, in which \r stands for
 * the end of a line. `name` is that of the tokenizer, for messages. A template whose tokens the
 * tokenizer lacks is refused. The caller calls chat_close(*out). */
ampc_status chat_open(Tokenizer *t, const char *name, const char *text, Chat **out);
void chat_close(Chat *c); /* NULL is fine */
/* Returns the token that ends an answer, or UINT32_MAX. */
uint32_t chat_end(const Chat *c);
/* Appends the ids of a record, `n` bytes of JSON; those of answers have the bit TEXTS_ANSWER.
 * `args` has lines "ignore=KEY": names that a record may have besides. */
ampc_status chat_record(Chat *c, const char *json, size_t n, const char *args, Ids *out);
/* Appends the ids of the first question of a conversation, up to where its answer begins. `system`:
 * the content of a message of that role, or NULL. */
ampc_status chat_prompt(Chat *c, const char *system, const char *prompt, size_t n, Ids *out);
/* Appends the ids of a later question, and before them what the template has after an answer.
 * `ended`: the ids of the answer already have the token that ends it. */
ampc_status chat_turn(Chat *c, bool ended, const char *prompt, size_t n, Ids *out);
