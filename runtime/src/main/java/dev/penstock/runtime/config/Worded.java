package dev.penstock.runtime.config;

/** A choice whose word in a file is not its Java name. */
interface Worded {
    String word();
}
