package dev.penstock.runtime.certificates;

import java.nio.ByteBuffer;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;

/** A TLS handshake of two engines through memory. */
final class Handshake {
    private static final int ROUNDS = 100;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private Handshake() {}

    /**
     * Until both are content.
     *
     * @throws SSLException when the first of them refuses the other
     */
    static void between(SSLEngine client, SSLEngine server) throws SSLException {
        int size = 4 * client.getSession().getPacketBufferSize();
        ByteBuffer toServer = ByteBuffer.allocate(size);
        ByteBuffer toClient = ByteBuffer.allocate(size);
        client.beginHandshake();
        server.beginHandshake();
        for (int round = 0; round < ROUNDS; round++) {
            turn(client, toClient, toServer);
            turn(server, toServer, toClient);
            if (isDone(client) && isDone(server) && toServer.position() == 0) {
                return;
            }
        }
        throw new SSLException("no end of it");
    }

    private static boolean isDone(SSLEngine engine) {
        return engine.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING;
    }

    private static void turn(SSLEngine engine, ByteBuffer in, ByteBuffer out) throws SSLException {
        ByteBuffer unwrapped = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize());
        in.flip();
        for (int i = 0; i < ROUNDS; i++) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK -> engine.getDelegatedTask().run();
                case NEED_WRAP -> engine.wrap(NOTHING.duplicate(), out);
                case NEED_UNWRAP, NEED_UNWRAP_AGAIN, NOT_HANDSHAKING, FINISHED -> {
                    if (!in.hasRemaining()) {
                        in.compact();
                        return;
                    }
                    engine.unwrap(in, unwrapped);
                }
            }
        }
        in.compact();
    }
}
