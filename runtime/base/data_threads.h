/* How many threads decode pictures, where the user says so. */
#pragma once

int data_threads(void); /* 0: nobody has said */
