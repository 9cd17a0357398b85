package dev.penstock.actors.fault;

/** What can happen to a frame on its way. */
public enum FrameHarm {
    DROP,
    DELAY,
    DUPLICATE,
    CORRUPT
}
