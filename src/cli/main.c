#include <stdio.h>
int main(void) { puts("kith"); return 0; }
