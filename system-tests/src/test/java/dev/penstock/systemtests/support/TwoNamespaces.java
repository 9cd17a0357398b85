package dev.penstock.systemtests.support;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Two hosts on one machine: network namespaces with one cable between them, each with its own
 * shared memory.
 *
 * <pre>
 *   [ east 10.77.0.1 ]----veth----[ west 10.77.0.2 ]
 * </pre>
 */
public final class TwoNamespaces implements AutoCloseable {
    public static final String EAST = "10.77.0.1";
    public static final String WEST = "10.77.0.2";

    private static final String OWN_MEMORY =
            "mount -t tmpfs -o size=512m tmpfs /dev/shm && exec \"$@\"";

    private final String east = "ps-east-" + ProcessHandle.current().pid();
    private final String west = "ps-west-" + ProcessHandle.current().pid();

    /**
     * Creates the namespaces and the cable.
     *
     * @throws UnsupportedOperationException with what this machine does not allow
     */
    public TwoNamespaces() {
        try {
            does("ip netns add " + east);
            does("ip netns add " + west);
            does("ip link add e0 netns %s type veth peer name w0 netns %s".formatted(east, west));
            plug(east, "e0", EAST);
            plug(west, "w0", WEST);
            does("ip netns exec %s unshare --mount true".formatted(east));
        } catch (UnsupportedOperationException e) {
            close();
            throw e;
        }
    }

    private static void plug(String namespace, String device, String address) {
        does("ip -n %s addr add %s/24 dev %s".formatted(namespace, address, device));
        does("ip -n %s link set %s up".formatted(namespace, device));
        does("ip -n %s link set lo up".formatted(namespace));
    }

    /** Returns the command prefix that starts a process in a namespace. */
    public List<String> on(String host) {
        String namespace = host.equals(EAST) ? east : west;
        return List.of(
                "ip",
                "netns",
                "exec",
                namespace,
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                OWN_MEMORY,
                "sh");
    }

    /** Cuts the cable: nothing gets through any more, and neither side is notified. */
    public void cut() {
        does("ip -n %s link set e0 down".formatted(east));
    }

    void heal() {
        does("ip -n %s link set e0 up".formatted(east));
    }

    @Override
    public void close() {
        attempt("ip netns del " + east); // takes its devices with it
        attempt("ip netns del " + west);
    }

    private static void does(String command) {
        String said = attempt(command);
        if (!said.isEmpty()) {
            throw new UnsupportedOperationException(command + ": " + said);
        }
    }

    /** Runs a command and returns its error; empty if it succeeded. */
    private static String attempt(String command) {
        try {
            Process process =
                    new ProcessBuilder(command.split(" ")).redirectErrorStream(true).start();
            String said = new String(process.getInputStream().readAllBytes(), UTF_8).strip();
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                return "still running after 10 s";
            }
            int code = process.exitValue();
            return code == 0 ? "" : said.isEmpty() ? "exit code " + code : said;
        } catch (IOException e) {
            return String.valueOf(e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new UncheckedIOException(new IOException("interrupted", e));
        }
    }
}
