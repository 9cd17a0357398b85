package dev.penstock.actors.dataplane.aeron;

import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A rank that sends here, and the session of its publication once an intact frame came. Another
 * session is heard only after this one ended. The poller's, but for {@link #vanishedWith} and
 * {@link #corrupt}.
 */
final class Sender {
    private final int rank;
    private final boolean udp;
    private final IntFunction<FrameForm> forms;
    private @Nullable FrameForm boundForm;
    private @Nullable FrameForm candidate;
    private int candidateSession;
    private volatile boolean bound;
    private volatile boolean ended;
    private volatile int sessionId;
    private volatile long corrupt;

    /**
     * @param udp whether its frames come over UDP
     * @param forms of its frames, by session
     */
    Sender(int rank, boolean udp, IntFunction<FrameForm> forms) {
        this.rank = rank;
        this.udp = udp;
        this.forms = forms;
    }

    int rank() {
        return rank;
    }

    boolean isUdp() {
        return udp;
    }

    /** Whether a frame of this session may be this rank's. */
    boolean mayBe(int session) {
        return !bound || sessionId == session || ended;
    }

    boolean isBoundTo(int session) {
        return bound && sessionId == session;
    }

    boolean hasEnded(int session) {
        return ended && sessionId == session;
    }

    /** Whether {@link #form} of a session costs nothing. */
    boolean knows(int session) {
        return (boundForm != null && sessionId == session)
                || (candidate != null && candidateSession == session);
    }

    /** The form of the session's frames. */
    FrameForm form(int session) {
        FrameForm known = boundForm;
        if (known != null && sessionId == session) {
            return known;
        }
        FrameForm form = candidate;
        if (form == null || candidateSession != session) {
            form = forms.apply(session);
            candidate = form;
            candidateSession = session;
        }
        return form;
    }

    /** An intact frame of this session came. */
    void bind(int session) {
        if (!isBoundTo(session)) {
            boundForm = form(session);
            sessionId = session;
            ended = false;
            bound = true;
        }
    }

    /** A frame that says it is of this rank was damaged. */
    void damaged() {
        long before = corrupt;
        corrupt = before + 1;
    }

    /** Damaged frames; from any thread. */
    long corrupt() {
        return corrupt;
    }

    void end() {
        ended = true;
    }

    boolean vanishedWith(int session) {
        return bound && !ended && sessionId == session;
    }
}
