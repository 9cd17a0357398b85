package dev.penstock.actors.dataplane.aeron;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.DatagramChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Between senders and one UDP endpoint: loses, doubles, reorders and damages datagrams by seed.
 * Each sender gets a socket of its own towards the endpoint, so that the answers find their way
 * back.
 */
final class UnrulyProxy implements AutoCloseable {
    private static final int AERON_HEADER = 32;
    private static final int DATA = 1;
    private static final int TYPE_AT = 6;

    final AtomicLong lost = new AtomicLong();
    final AtomicLong doubled = new AtomicLong();
    final AtomicLong reordered = new AtomicLong();
    final AtomicLong damaged = new AtomicLong();

    private final Rates rates;
    private final SplittableRandom random;
    private final InetSocketAddress endpoint;
    private final Selector selector;
    private final DatagramChannel front;
    private final Map<SocketAddress, DatagramChannel> backs = new HashMap<>();
    private final List<Held> held = new ArrayList<>();
    private final ByteBuffer datagram = ByteBuffer.allocateDirect(1 << 16);
    private final Thread thread;
    private volatile boolean running = true;
    private volatile boolean cut;

    /** Shares of the datagrams, each from 0 to 1. */
    record Rates(double loss, double twice, double late, double flip) {}

    private record Held(DatagramChannel way, SocketAddress to, ByteBuffer bytes) {}

    UnrulyProxy(String endpoint, Rates rates, long seed) throws IOException {
        int colon = endpoint.lastIndexOf(':');
        this.endpoint =
                new InetSocketAddress(
                        endpoint.substring(0, colon),
                        Integer.parseInt(endpoint.substring(colon + 1)));
        this.rates = rates;
        this.random = new SplittableRandom(seed);
        this.selector = Selector.open();
        this.front = DatagramChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
        front.configureBlocking(false).register(selector, SelectionKey.OP_READ);
        this.thread = Thread.ofPlatform().daemon().name("unruly-proxy").start(this::run);
    }

    /** What senders are to use in place of the endpoint. */
    String address() throws IOException {
        return "127.0.0.1:" + ((InetSocketAddress) front.getLocalAddress()).getPort();
    }

    private void run() {
        try {
            while (running) {
                selector.select(1);
                for (SelectionKey key : selector.selectedKeys()) {
                    receiveAll((DatagramChannel) key.channel(), (SocketAddress) key.attachment());
                }
                selector.selectedKeys().clear();
                releaseHeld();
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** From a sender ({@code sender} null) to the endpoint, or back. */
    private void receiveAll(DatagramChannel from, SocketAddress sender) throws IOException {
        datagram.clear();
        SocketAddress source = from.receive(datagram);
        while (source != null) {
            datagram.flip();
            if (sender == null) {
                pass(backOf(source), endpoint);
            } else {
                pass(front, sender);
            }
            datagram.clear();
            source = from.receive(datagram);
        }
    }

    private DatagramChannel backOf(SocketAddress sender) throws IOException {
        DatagramChannel known = backs.get(sender);
        if (known == null) {
            known = DatagramChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
            known.configureBlocking(false).register(selector, SelectionKey.OP_READ, sender);
            backs.put(sender, known);
        }
        return known;
    }

    /** From now on nothing gets through, in either direction, or everything again. */
    void cut(boolean now) {
        cut = now;
    }

    private void pass(DatagramChannel way, SocketAddress to) throws IOException {
        if (cut) {
            lost.incrementAndGet();
            return;
        }
        double drawn = random.nextDouble();
        if (drawn < rates.loss) {
            lost.incrementAndGet();
            return;
        }
        if (isData() && random.nextDouble() < rates.flip) {
            flip();
        }
        if (random.nextDouble() < rates.late) {
            reordered.incrementAndGet();
            held.add(new Held(way, to, copy()));
            return;
        }
        if (random.nextDouble() < rates.twice) {
            doubled.incrementAndGet();
            way.send(copy(), to);
        }
        way.send(datagram, to);
    }

    /** Aeron trusts its own headers, so what lies behind them is damaged. */
    private boolean isData() {
        datagram.order(ByteOrder.LITTLE_ENDIAN);
        return datagram.limit() > AERON_HEADER && datagram.getShort(TYPE_AT) == DATA;
    }

    private void flip() {
        int frameEnd = Math.min(datagram.limit(), Math.max(0, datagram.getInt(0)));
        if (frameEnd > AERON_HEADER) {
            int at = random.nextInt(AERON_HEADER, frameEnd);
            datagram.put(at, (byte) (datagram.get(at) ^ (1 << random.nextInt(8))));
            damaged.incrementAndGet();
        }
    }

    private ByteBuffer copy() {
        return ByteBuffer.allocate(datagram.limit()).put(datagram.duplicate()).flip();
    }

    /** Behind at least one that came later, in any order. */
    private void releaseHeld() throws IOException {
        while (!held.isEmpty()) {
            Held next = held.remove(random.nextInt(held.size()));
            next.way.send(next.bytes, next.to);
        }
    }

    @Override
    public void close() throws IOException {
        running = false;
        selector.wakeup();
        try {
            thread.join(5_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        front.close();
        for (DatagramChannel back : backs.values()) {
            back.close();
        }
        selector.close();
    }
}
