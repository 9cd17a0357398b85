/** Proves the orders of a project in its tests. What it exports is public. */
module dev.penstock.schedules.junit {
    requires static org.jspecify;
    requires transitive dev.penstock.schedules;
    requires transitive org.junit.jupiter.api;

    exports dev.penstock.junit;
}
