/* How many threads decode pictures, if the user has set it. */
#pragma once

int data_threads(void); /* 0: not set */
