package dev.penstock.runtime.launch;

/**
 * Where a process takes tensors of other hosts.
 *
 * @param host name or address to listen on
 * @param advertisedHost what other hosts reach it by
 */
public record NodeInterface(String host, String advertisedHost) {
    /** Of a run that other machines have no part in. */
    public static final NodeInterface LOOPBACK = new NodeInterface("127.0.0.1", "127.0.0.1");
}
