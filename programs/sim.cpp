// Whole-program entry of the capacity planner: see sim/cli.
int main() { return 0; }
