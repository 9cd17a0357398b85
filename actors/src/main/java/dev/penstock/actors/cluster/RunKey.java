package dev.penstock.actors.cluster;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;

/**
 * The secret of one run, 256 bits, under which its frames travel between hosts. Drawn by the run's
 * keeper and sent in TLS only; it is in no file, and no text of it exists.
 */
public record RunKey(long first, long second, long third, long fourth) {
    private static final String TLS_TRANSPORT = "tls-tcp";

    /** A key that nobody knows yet. */
    public static RunKey random() {
        var random = new SecureRandom();
        return new RunKey(
                random.nextLong(), random.nextLong(), random.nextLong(), random.nextLong());
    }

    /** Whether messages of an actor system travel in TLS, so that a key may be among them. */
    static boolean mayTravel(com.typesafe.config.Config system) {
        return system.getString("akka.remote.artery.transport").equals(TLS_TRANSPORT);
    }

    /** As ciphers take it. */
    public SecretKey secret() {
        byte[] bytes =
                ByteBuffer.allocate(4 * Long.BYTES)
                        .putLong(first)
                        .putLong(second)
                        .putLong(third)
                        .putLong(fourth)
                        .array();
        return new SecretKeySpec(bytes, "AES");
    }

    /** Messages are logged now and then. */
    @Override
    public String toString() {
        return "RunKey[secret]";
    }
}
