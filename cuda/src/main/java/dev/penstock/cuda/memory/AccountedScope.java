package dev.penstock.cuda.memory;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import dev.penstock.cuda.device.DeviceScope;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A scope over any {@link MemorySource}. One lock guards the whole tree: allocation is rare
 * (nothing is allocated in a steady step) and must count in all parents at once.
 */
public final class AccountedScope implements DeviceScope {
    private final MemorySource source;
    private final String name;
    private final long limitBytes;
    private final @Nullable AccountedScope parent;
    private final boolean traceAllocations;
    private final Object lock;
    private final List<Held> buffers = new ArrayList<>();
    private final List<AccountedScope> children = new ArrayList<>();
    private long liveBytes;
    private long peakBytes;
    private boolean closed;

    /** A buffer, and where it was allocated if allocations are traced. */
    private record Held(OwnedBuffer buffer, @Nullable Throwable allocatedAt) {}

    private AccountedScope(
            MemorySource source,
            String name,
            long limitBytes,
            @Nullable AccountedScope parent,
            boolean traceAllocations) {
        this.source = source;
        this.name = name;
        this.limitBytes = limitBytes;
        this.parent = parent;
        this.traceAllocations = traceAllocations;
        this.lock = parent == null ? new Object() : parent.lock;
    }

    /**
     * A tree of its own.
     *
     * @param traceAllocations whether leak reports show where each buffer was allocated
     */
    public static AccountedScope root(
            MemorySource source, String name, long limitBytes, boolean traceAllocations) {
        return new AccountedScope(source, name, limitBytes, null, traceAllocations);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public DeviceBuffer allocate(String bufferName, long bytes) {
        return allocate(bufferName, bytes, source);
    }

    @Override
    public DeviceBuffer allocateStaged(String bufferName, long bytes) {
        return allocate(bufferName, bytes, source::takeStaged);
    }

    @Override
    public boolean isStaged() {
        return source.stages();
    }

    private DeviceBuffer allocate(String bufferName, long bytes, MemorySource way) {
        synchronized (lock) {
            checkOpen("allocating '" + bufferName + "'");
            if (bytes <= 0) {
                throw new DeviceException(
                        "allocating '%s' in scope '%s': expected more than 0 bytes, got %d"
                                .formatted(bufferName, path(), bytes));
            }
            for (AccountedScope s = this; s != null; s = s.parent) {
                s.checkRoom(bufferName, bytes);
            }
            OwnedBuffer buffer = take(bufferName, bytes, way);
            Throwable allocatedAt =
                    traceAllocations ? new Throwable("allocated here: " + bufferName) : null;
            buffers.add(new Held(buffer, allocatedAt));
            count(bytes);
            return buffer;
        }
    }

    private OwnedBuffer take(String bufferName, long bytes, MemorySource way) {
        try {
            return way.take(bufferName, path(), bytes);
        } catch (DeviceLostException e) {
            throw new DeviceLostException(
                    "allocating '%s' in scope '%s': %s"
                            .formatted(bufferName, path(), e.getMessage()),
                    e.isGone(),
                    e);
        } catch (RuntimeException | OutOfMemoryError e) {
            throw new DeviceException(
                    "allocating '%s' in scope '%s': no room for %,d bytes: %s%n%s"
                            .formatted(bufferName, path(), bytes, e.getMessage(), root().tree()),
                    e);
        }
    }

    @Override
    public DeviceScope child(String childName, long limitBytes) {
        synchronized (lock) {
            checkOpen("opening child scope '" + childName + "'");
            AccountedScope child =
                    new AccountedScope(source, childName, limitBytes, this, traceAllocations);
            children.add(child);
            return child;
        }
    }

    @Override
    public List<DeviceScope> children() {
        synchronized (lock) {
            return List.copyOf(children);
        }
    }

    @Override
    public long liveBytes() {
        synchronized (lock) {
            return liveBytes;
        }
    }

    @Override
    public long peakBytes() {
        synchronized (lock) {
            return peakBytes;
        }
    }

    @Override
    public void close() {
        synchronized (lock) {
            if (closed) {
                return;
            }
            if (!children.isEmpty()) {
                throw new DeviceException(
                        "closing scope '%s': expected all children closed, but these are open:\n%s"
                                .formatted(path(), tree()));
            }
            closed = true;
            for (Held held : buffers.reversed()) {
                held.buffer().free();
            }
            buffers.clear();
            count(-liveBytes);
            if (parent != null) {
                parent.children.remove(this);
            }
        }
    }

    /** This scope, its buffers and its children with their sizes, for people. */
    public String tree() {
        synchronized (lock) {
            StringBuilder text = new StringBuilder();
            appendTree(text, "");
            return text.toString();
        }
    }

    private void appendTree(StringBuilder text, String indent) {
        text.append(
                "%sscope '%s' %,d bytes, peak %,d%n".formatted(indent, name, liveBytes, peakBytes));
        for (Held held : buffers) {
            OwnedBuffer buffer = held.buffer();
            text.append("%s  '%s' %,d bytes%n".formatted(indent, buffer.name(), buffer.bytes()));
            if (held.allocatedAt() != null) {
                for (StackTraceElement element : held.allocatedAt().getStackTrace()) {
                    text.append("%s    at %s%n".formatted(indent, element));
                }
            }
        }
        for (AccountedScope child : children) {
            child.appendTree(text, indent + "  ");
        }
    }

    private void checkOpen(String what) {
        if (closed) {
            throw new DeviceException(
                    "%s: expected scope '%s' open, but it was closed".formatted(what, path()));
        }
    }

    private void checkRoom(String bufferName, long bytes) {
        if (bytes > limitBytes - liveBytes) {
            throw new DeviceException(
                    "allocating '%s': wanted %,d bytes, but scope '%s' has %,d of its %,d left; raise the limit or make the work smaller\n%s"
                            .formatted(
                                    bufferName,
                                    bytes,
                                    path(),
                                    limitBytes - liveBytes,
                                    limitBytes,
                                    root().tree()));
        }
    }

    private void count(long bytes) {
        for (AccountedScope s = this; s != null; s = s.parent) {
            s.liveBytes += bytes;
            s.peakBytes = Math.max(s.peakBytes, s.liveBytes);
        }
    }

    private AccountedScope root() {
        return parent == null ? this : parent.root();
    }

    private String path() {
        return parent == null ? name : parent.path() + "/" + name;
    }
}
