/* Names of layers and blocks, and which node of a group speaks for it. */
#pragma once
#include "values.h"

/* Returns the part that names a launch of several parts: the first with the most elements. Returns
 * the group itself if it has no parts or they run in turn. */
const Group *group_main_part(const Graph *g, uint32_t group);
/* Returns the node that names a group: the anchor if a layer has it, else the first of a layer. */
const Node *group_main_node(const Graph *g, uint32_t group);
const char *block_word(Compile *c, uint16_t block); /* "train", "eval2" */
/* Returns a layer's name: "features.2.1". The model is left out if the job has only one. */
const char *layer_path(const Graph *g, const char *layer);
const char *layer_type(Compile *c, const char *layer); /* "BatchNorm2d"; NULL: unknown */
/* Returns the name of the optimizer whose update n belongs to; NULL: none. */
const char *optimizer_name_of(const Graph *g, const Node *n);
/* Returns the line of the job that the node comes from; 0: it comes from no line. */
uint32_t node_line(const Compile *c, Value v);
