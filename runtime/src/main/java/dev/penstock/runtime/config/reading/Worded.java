package dev.penstock.runtime.config.reading;

/** A choice whose word in a file is not its Java name. */
public interface Worded {
    String word();
}
