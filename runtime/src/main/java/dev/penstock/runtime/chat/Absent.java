package dev.penstock.runtime.chat;

/** Values of a template that are none. */
enum Absent {
    /** Of a variable or member that does not exist; as text it is empty. */
    UNDEFINED,
    /** What {@code none} stands for. */
    NONE
}
