package dev.penstock.runtime.chaos;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Stands before a node: others reach it only through here, so that their connections can be harmed
 * without any right that a user does not have. Thread-safe.
 *
 * <pre>
 *   other nodes --&gt; [ relay, the advertised address ] --&gt; [ node, the address it listens on ]
 * </pre>
 */
final class TcpRelay implements AutoCloseable {
    private static final int BUFFER_BYTES = 1 << 16;
    private static final Duration POLL = Duration.ofMillis(5);
    private static final int CONNECT_MILLIS = 2_000;

    private final ServerSocket server;
    private final InetSocketAddress node;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private volatile long cutUntil = System.nanoTime();
    private volatile boolean closed;

    private TcpRelay(ServerSocket server, InetSocketAddress node) {
        this.server = server;
        this.node = node;
    }

    /**
     * Begins to pass on.
     *
     * @throws UncheckedIOException if it cannot listen
     */
    static TcpRelay start(InetSocketAddress advertised, InetSocketAddress node) {
        try {
            var server = new ServerSocket();
            server.setReuseAddress(true);
            server.bind(advertised);
            var relay = new TcpRelay(server, node);
            Thread.ofVirtual().start(relay::accept);
            return relay;
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot listen on %s: %s".formatted(advertised, e.getMessage()), e);
        }
    }

    private void accept() {
        while (!closed) {
            try {
                Socket other = server.accept();
                sockets.add(other);
                Thread.ofVirtual().start(() -> join(other));
            } catch (IOException e) {
                LockSupport.parkNanos(POLL.toNanos()); // closed, or out of files for now
            }
        }
    }

    private void join(Socket other) {
        var own = new Socket();
        sockets.add(own);
        try {
            own.connect(node, CONNECT_MILLIS);
            own.setTcpNoDelay(true);
            other.setTcpNoDelay(true);
            Thread back = Thread.ofVirtual().start(() -> pass(own, other, false));
            pass(other, own, true);
            back.join();
        } catch (IOException e) {
            // nobody listens there now: whoever connects is told by the reset
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            reset(own);
            reset(other);
        }
    }

    private void pass(Socket from, Socket to, boolean towardsNode) {
        var buffer = new byte[BUFFER_BYTES];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                while (towardsNode && isCut() && !closed) {
                    LockSupport.parkNanos(POLL.toNanos());
                }
                out.write(buffer, 0, read);
            }
            to.shutdownOutput();
        } catch (IOException e) {
            reset(from);
            reset(to);
        }
    }

    private boolean isCut() {
        return System.nanoTime() - cutUntil < 0;
    }

    /** Nothing reaches the node for so long, and nobody is told; what it says still gets out. */
    void cut(Duration length) {
        cutUntil = System.nanoTime() + length.toNanos();
    }

    /** Resets all connections to the node; what was on its way is lost. */
    int reset() {
        int count = sockets.size() / 2;
        sockets.forEach(this::reset);
        return count;
    }

    private void reset(Socket socket) {
        sockets.remove(socket);
        try {
            socket.setSoLinger(true, 0);
            socket.close();
        } catch (SocketException e) {
            // it was closed before
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        closed = true;
        try {
            server.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        reset();
    }
}
