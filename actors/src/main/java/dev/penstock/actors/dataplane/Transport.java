package dev.penstock.actors.dataplane;

/** How tensors travel between processes. */
public enum Transport {
    /** Shared memory between processes that use the same media driver, UDP between all others. */
    AUTO,
    /** Shared memory only; the process has no UDP endpoint. */
    IPC,
    /** UDP only, within a host and a process, too. */
    UDP
}
