package dev.penstock.actors.dataplane.aeron;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.penstock.actors.dataplane.TensorFrame;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.agrona.DirectBuffer;

/**
 * Frames sealed with AES-256-GCM (NIST SP 800-38D): the tag authenticates header and chunk, and
 * since enciphering the chunk along with it is no slower in the JDK than authenticating alone (GMAC
 * buffers what it only authenticates; HMAC-SHA256 is several times slower), the chunk is
 * enciphered, too.
 *
 * <p>Each publication has a key of its own, derived from the run's key, run, epoch, both ranks and
 * Aeron's session; the nonce is the frame's position in the stream. A position is used once, so no
 * nonce ever repeats under a key, and a frame played back at another place is refused.
 */
final class SealedFrames implements FrameForm {
    private static final int NONCE_BYTES = 12;
    private static final int POSITION_AT = NONCE_BYTES - Long.BYTES;

    /** Whose frames these are. */
    record Link(long runId, int epoch, int fromRank, int toRank, int session) {}

    private final SecretKeySpec key;
    private final Cipher cipher;
    private final byte[] header = new byte[TensorFrame.SEAL_AT];
    private final byte[] nonce = new byte[NONCE_BYTES];
    private byte[] in = new byte[0];
    private byte[] out = new byte[0];
    private MemorySegment inSegment = MemorySegment.NULL;
    private MemorySegment outSegment = MemorySegment.NULL;

    SealedFrames(SecretKey runKey, Link link) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(runKey.getEncoded(), "HmacSHA256"));
            mac.update("penstock data plane".getBytes(UTF_8));
            byte[] derived = mac.doFinal(link.toString().getBytes(UTF_8));
            key = new SecretKeySpec(derived, "AES");
            Arrays.fill(derived, (byte) 0);
            cipher = Cipher.getInstance("AES/GCM/NoPadding");
        } catch (GeneralSecurityException e) {
            throw broken(e);
        }
    }

    @Override
    public boolean checks() {
        return true;
    }

    @Override
    public void complete(
            TensorFrame frame,
            DirectBuffer log,
            int at,
            MemorySegment tensor,
            long offset,
            int chunk,
            long position) {
        frame.sealed();
        room(chunk);
        MemorySegment.copy(tensor, offset, inSegment, 0, chunk);
        try {
            begin(Cipher.ENCRYPT_MODE, log, at, position);
            cipher.doFinal(in, 0, chunk, out, 0);
        } catch (GeneralSecurityException e) {
            throw broken(e);
        }
        RawMemory.copyTo(log, at + TensorFrame.HEADER_BYTES, outSegment, 0, chunk);
        RawMemory.copyTo(log, at + TensorFrame.SEAL_AT, outSegment, chunk, TensorFrame.SEAL_BYTES);
    }

    @Override
    public boolean isIntact(
            TensorFrame frame, DirectBuffer log, int at, int length, long position) {
        if (!frame.isSealed()) {
            return false;
        }
        int chunk = length - TensorFrame.HEADER_BYTES;
        room(chunk);
        log.getBytes(at + TensorFrame.HEADER_BYTES, in, 0, chunk);
        log.getBytes(at + TensorFrame.SEAL_AT, in, chunk, TensorFrame.SEAL_BYTES);
        try {
            begin(Cipher.DECRYPT_MODE, log, at, position);
            cipher.doFinal(in, 0, chunk + TensorFrame.SEAL_BYTES, out, 0);
            return true;
        } catch (AEADBadTagException e) {
            return false;
        } catch (GeneralSecurityException e) {
            throw broken(e);
        }
    }

    private void begin(int mode, DirectBuffer log, int at, long position)
            throws GeneralSecurityException {
        ByteBuffer.wrap(nonce).putLong(POSITION_AT, position);
        log.getBytes(at, header);
        cipher.init(mode, key, new GCMParameterSpec(8 * TensorFrame.SEAL_BYTES, nonce));
        cipher.updateAAD(header);
    }

    /** Frames have one length but for the last of a tensor, so this grows once or twice. */
    private void room(int chunk) {
        int needed = chunk + TensorFrame.SEAL_BYTES;
        if (in.length < needed) {
            in = new byte[needed];
            out = new byte[needed];
            inSegment = MemorySegment.ofArray(in);
            outSegment = MemorySegment.ofArray(out);
        }
    }

    @Override
    public MemorySegment payload() {
        return outSegment;
    }

    @Override
    public long payloadAt() {
        return 0;
    }

    private static IllegalStateException broken(GeneralSecurityException e) {
        return new IllegalStateException("every JDK has AES-GCM and HMAC-SHA256", e);
    }
}
