package dev.penstock.actors.dataplane;

/**
 * Where a process's data plane is reached: plain data that the control plane hands from process to
 * process. Two processes with the same host and driver directory exchange tensors over shared
 * memory, all others over UDP.
 *
 * @param host identity of the host, equal on all its processes and on no other host
 * @param driverDirectory of the media driver that the process uses
 * @param udpEndpoint {@code host:port} of the process's UDP endpoint; empty if it has none
 */
public record PeerAddress(String host, String driverDirectory, String udpEndpoint) {
    /** Port of the UDP endpoint; 0 if there is none. */
    public int udpPort() {
        return udpEndpoint.isEmpty()
                ? 0
                : Integer.parseInt(udpEndpoint.substring(udpEndpoint.lastIndexOf(':') + 1));
    }

    /** Whether both use the same media driver. */
    public boolean sharesMemoryWith(PeerAddress other) {
        return host.equals(other.host) && driverDirectory.equals(other.driverDirectory);
    }
}
