package dev.penstock.actors.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the death of a process of this host at once: each holds a local connection to the seed's
 * process, which the system closes when the process ends, however it ends. A closed connection is
 * proof; missing heartbeats never are, unless the cluster removes the member because of them. One
 * who moves to another seed says so first: it lives, and it is this seed that was taken for dead.
 */
public final class HostWatch implements AutoCloseable {
    /** A connection held by the one who may die. */
    public static final class Line implements AutoCloseable {
        private final SocketChannel channel;

        private Line(SocketChannel channel) {
            this.channel = channel;
        }

        /** Closes it for another one; whoever held it lives. */
        void move() {
            try {
                write(channel, MOVED);
            } catch (IOException e) {
                LOG.debug(
                        "a lifeline moves without a word", e); // it is gone, or full: nobody reads
            }
            close();
        }

        @Override
        public void close() {
            closeQuietly(channel);
        }
    }

    /** Takes the next connection, as {@link ServerSocketChannel#accept} does. */
    @FunctionalInterface
    interface Acceptor {
        SocketChannel accept() throws IOException;
    }

    private static final Logger LOG = LoggerFactory.getLogger(HostWatch.class);
    private static final String MOVED = "moved";
    private static final int LONGEST_NAME = 512;
    private static final Duration PAUSE = Duration.ofMillis(100);

    private final Path path;
    private final ServerSocketChannel server;
    private final Consumer<String> onCut;

    private HostWatch(Path path, ServerSocketChannel server, Consumer<String> onCut) {
        this.path = path;
        this.server = server;
        this.onCut = onCut;
    }

    /**
     * Waits for connections.
     *
     * @param onCut told the name of a holder whose connection closed; on any thread
     */
    static HostWatch open(Consumer<String> onCut) throws IOException {
        List<Path> folders =
                List.of(Path.of(System.getProperty("java.io.tmpdir")), Path.of("/tmp"));
        return open(folders, server -> server::accept, onCut);
    }

    /**
     * @param folders for the socket's file, the best first: a system takes no path of more than
     *     about a hundred characters
     */
    static HostWatch open(
            List<Path> folders,
            Function<ServerSocketChannel, Acceptor> acceptor,
            Consumer<String> onCut)
            throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            var lifeline = new HostWatch(bind(server, folders), server, onCut);
            Acceptor connections = acceptor.apply(server);
            Thread.ofVirtual().name("lifeline").start(() -> lifeline.accept(connections));
            return lifeline;
        } catch (IOException e) {
            server.close();
            throw e;
        }
    }

    private static Path bind(ServerSocketChannel server, List<Path> folders) throws IOException {
        var failure = new IOException("no folder can hold a local socket");
        String name = "penstock-" + UUID.randomUUID().toString().substring(0, 13);
        for (Path folder : folders) {
            Path path = folder.resolve(name);
            try {
                server.bind(UnixDomainSocketAddress.of(path));
                return path;
            } catch (IOException e) {
                failure.addSuppressed(e);
                LOG.info("no local socket at {}: {}", path, e.getMessage());
            }
        }
        throw failure;
    }

    /** Where to connect to. */
    String address() {
        return path.toString();
    }

    /**
     * Connects; where that fails there is no proof of a death, only silence.
     *
     * @param name of the holder
     * @return empty if it failed, which may pass
     */
    static Optional<Line> hold(String address, String name) {
        SocketChannel channel = open();
        try {
            channel.connect(UnixDomainSocketAddress.of(address));
            write(channel, name);
            return Optional.of(new Line(channel));
        } catch (IOException e) {
            LOG.info("no lifeline to {}: {}", address, e.getMessage());
            closeQuietly(channel);
            return Optional.empty();
        }
    }

    private static void write(SocketChannel channel, String line) throws IOException {
        ByteBuffer text = ByteBuffer.wrap((line + '\n').getBytes(StandardCharsets.UTF_8));
        while (text.hasRemaining()) {
            channel.write(text);
        }
    }

    private static SocketChannel open() {
        try {
            return SocketChannel.open(StandardProtocolFamily.UNIX);
        } catch (IOException e) {
            throw new UncheckedIOException("this system has no local sockets", e);
        }
    }

    /** One connection that cannot be taken, such as for want of a file descriptor, ends nothing. */
    private void accept(Acceptor connections) {
        while (server.isOpen()) {
            try {
                SocketChannel holder = connections.accept();
                Thread.ofVirtual().name("lifeline-holder").start(() -> watch(holder));
            } catch (IOException e) {
                if (server.isOpen()) {
                    LOG.warn("a process of this host cannot hold its lifeline yet", e);
                    LockSupport.parkNanos(PAUSE.toNanos());
                }
            }
        }
    }

    private void watch(SocketChannel holder) {
        ByteBuffer buffer = ByteBuffer.allocate(LONGEST_NAME);
        try (holder) {
            while (holder.read(buffer) >= 0) {
                if (!buffer.hasRemaining()) {
                    return; // nobody of ours
                }
            }
        } catch (IOException e) {
            LOG.debug("a lifeline broke", e);
        }
        if (server.isOpen()) { // else its holders have moved to another
            String said =
                    new String(buffer.array(), 0, buffer.position(), StandardCharsets.UTF_8)
                            .strip();
            if (said.endsWith('\n' + MOVED)) {
                LOG.info("{} has moved to another seed", said.lines().findFirst().orElse(""));
            } else {
                onCut.accept(said);
            }
        }
    }

    @Override
    public void close() {
        closeQuietly(server);
        try {
            Files.deleteIfExists(path);
        } catch (IOException e) {
            LOG.debug("the lifeline's file stays", e);
        }
    }

    private static void closeQuietly(AutoCloseable channel) {
        try {
            channel.close();
        } catch (Exception e) {
            LOG.debug("a lifeline does not close", e);
        }
    }
}
