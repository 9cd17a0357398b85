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
import java.util.UUID;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the death of a process of this host at once: each holds a local connection to the seed's
 * process, which the system closes when the process ends, however it ends. A closed connection is
 * proof; heartbeats over a network never are.
 */
public final class HostWatch implements AutoCloseable {
    /** A connection held by the one who may die. */
    public static final class Line implements AutoCloseable {
        private final SocketChannel channel;

        private Line(SocketChannel channel) {
            this.channel = channel;
        }

        @Override
        public void close() {
            closeQuietly(channel);
        }
    }

    private static final Logger LOG = LoggerFactory.getLogger(HostWatch.class);
    private static final int LONGEST_NAME = 512;

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
        Path path =
                Path.of(System.getProperty("java.io.tmpdir"))
                        .resolve("penstock-" + UUID.randomUUID().toString().substring(0, 13));
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(path));
        HostWatch lifeline = new HostWatch(path, server, onCut);
        Thread.ofVirtual().name("lifeline").start(lifeline::accept);
        return lifeline;
    }

    /** Where to connect to. */
    String address() {
        return path.toString();
    }

    /**
     * Connects; where that fails there is no proof of a death, only silence.
     *
     * @param name of the holder
     */
    static Line hold(String address, String name) {
        SocketChannel channel = open();
        try {
            channel.connect(UnixDomainSocketAddress.of(address));
            ByteBuffer text = ByteBuffer.wrap((name + '\n').getBytes(StandardCharsets.UTF_8));
            while (text.hasRemaining()) {
                channel.write(text);
            }
        } catch (IOException e) {
            LOG.info("no lifeline to {}: {}", address, e.getMessage());
        }
        return new Line(channel);
    }

    private static SocketChannel open() {
        try {
            return SocketChannel.open(StandardProtocolFamily.UNIX);
        } catch (IOException e) {
            throw new UncheckedIOException("this system has no local sockets", e);
        }
    }

    private void accept() {
        try {
            while (true) {
                SocketChannel holder = server.accept();
                Thread.ofVirtual().name("lifeline-holder").start(() -> watch(holder));
            }
        } catch (IOException e) {
            LOG.debug("the lifeline is closed", e);
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
        onCut.accept(
                new String(buffer.array(), 0, buffer.position(), StandardCharsets.UTF_8).strip());
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
