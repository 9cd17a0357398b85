package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import jcuda.CudaException;
import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstreamCaptureMode;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * Gives the driver by one call what it was given before by many. Work is collected until somebody
 * waits for it, or has other plans for the stream; a sequence that comes a second time (the same
 * kernels on the same addresses with the same numbers, as steps of training bring it) is captured
 * as a CUDA graph and launched as one from then on. What never comes again, such as an optimizer's
 * numbers, goes to the stream as it would without this. So bits do not depend on graphs.
 */
final class GpuGraphs implements StreamCollector {
    private static final System.Logger LOG = System.getLogger(GpuGraphs.class.getName());

    /** Graphs of a device: the GPU keeps some KiB for each kernel of each. */
    private static final int MOST_GRAPHS = 256;

    /** A graph that was not launched during so many flushes gives way to another. */
    private static final long STALE_FLUSHES = 16L * MOST_GRAPHS;

    /** Sequences that came once and are remembered. */
    private static final int MOST_SEEN = 4096;

    /** The GPU does not wait for longer sequences to be complete. */
    private static final int MOST_WORKS = 512;

    /** Shorter ones gain nothing. */
    private static final int LEAST_WORKS = 3;

    /** What drivers before CUDA 11.4 do not have. */
    private static final String NEWEST = "cuGraphInstantiateWithFlags";

    private final GpuContext gpu;
    private final WorkSequence pending = new WorkSequence();
    private final Map<Long, Graph> graphs = new HashMap<>();
    private final Set<Long> seen = new LinkedHashSet<>();
    private long flushes;
    private boolean refused;

    /** What was given since somebody waited: one of these failed if any did. */
    private final Set<String> unfinished = new LinkedHashSet<>();

    private static final class Graph {
        final WorkSequence content;
        final Set<String> names;
        final CUgraphExec executable;
        long lastUse;

        Graph(WorkSequence content, CUgraphExec executable) {
            this.content = content;
            this.names = content.names();
            this.executable = executable;
        }
    }

    /**
     * @throws DeviceException if the driver is too old for it
     */
    GpuGraphs(GpuContext gpu) {
        this.gpu = gpu;
        // JCuda binds lazily: a function that is not there would end the process
        if (SymbolLookup.libraryLookup("libcuda.so.1", Arena.global()).find(NEWEST).isEmpty()) {
            throw new DeviceException(
                    "graphs on GPU %d: expected an NVIDIA driver of CUDA 11.4 or later; update it or try device.graphs = false"
                            .formatted(gpu.index()));
        }
    }

    @Override
    public synchronized void add(StreamWork work, long[] numbers, int count) {
        pending.add(work, numbers, count);
        if (pending.size() == MOST_WORKS) {
            flush();
        }
    }

    @Override
    public synchronized void flush() {
        if (pending.size() == 0) {
            return;
        }
        flushes++;
        try {
            gpu.bind();
            Graph graph = graph();
            unfinished.addAll(graph == null ? pending.names() : graph.names);
            if (graph == null) {
                pending.give();
            } else {
                graph.lastUse = flushes;
                launch(graph);
            }
        } finally {
            pending.clear();
        }
    }

    private void launch(Graph graph) {
        try {
            JCudaDriver.cuGraphLaunch(graph.executable, gpu.stream());
        } catch (CudaException e) {
            throw GpuFailure.of(
                    "starting a graph of %d kernels (%s) on GPU %d"
                            .formatted(
                                    graph.content.size(),
                                    String.join(", ", graph.names),
                                    gpu.index()),
                    e);
        }
    }

    /** The graph of what is pending; null if that had better be given piece by piece. */
    private @Nullable Graph graph() {
        if (refused || pending.size() < LEAST_WORKS) {
            return null;
        }
        Graph known = graphs.get(pending.hash());
        if (known != null) {
            return known.content.hasContentOf(pending) ? known : null;
        }
        if (!seen.remove(pending.hash())) {
            seen.add(pending.hash());
            forget();
            return null;
        }
        if (!hasRoom()) {
            return null;
        }
        CUgraphExec executable = capture();
        if (executable == null) {
            return null;
        }
        Graph made = new Graph(pending.copy(), executable);
        graphs.put(pending.hash(), made);
        return made;
    }

    private void forget() {
        Iterator<Long> oldest = seen.iterator();
        while (seen.size() > MOST_SEEN) {
            oldest.next();
            oldest.remove();
        }
    }

    private boolean hasRoom() {
        if (graphs.size() < MOST_GRAPHS) {
            return true;
        }
        Map.Entry<Long, Graph> oldest =
                graphs.entrySet().stream()
                        .min(Comparator.comparingLong(each -> each.getValue().lastUse))
                        .orElseThrow();
        if (flushes - oldest.getValue().lastUse < STALE_FLUSHES) {
            return false;
        }
        graphs.remove(oldest.getKey());
        destroy(oldest.getValue());
        return true;
    }

    /**
     * Records what is pending, which runs nothing. Other threads wait for the stream meanwhile:
     * asking a stream that is captured would end the capture.
     *
     * @return null if the driver does not capture this; nothing is captured any more then
     */
    private @Nullable CUgraphExec capture() {
        synchronized (gpu.stream()) {
            CUgraph graph = new CUgraph();
            CUgraphExec executable = new CUgraphExec();
            try {
                JCudaDriver.cuStreamBeginCapture(
                        gpu.stream(), CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
                try {
                    pending.give();
                } finally {
                    JCudaDriver.cuStreamEndCapture(gpu.stream(), graph);
                }
                try {
                    JCudaDriver.cuGraphInstantiate(executable, graph, 0);
                } finally {
                    gpu.giveBack("a captured graph", () -> JCudaDriver.cuGraphDestroy(graph));
                }
                return executable;
            } catch (CudaException e) {
                DeviceException failure = GpuFailure.of("capturing on GPU " + gpu.index(), e);
                if (failure instanceof DeviceLostException) {
                    throw failure;
                }
                return withoutGraphs(failure);
            } catch (DeviceLostException e) {
                throw e;
            } catch (DeviceException e) {
                return withoutGraphs(e);
            }
        }
    }

    private @Nullable CUgraphExec withoutGraphs(DeviceException why) {
        refused = true;
        LOG.log(
                System.Logger.Level.WARNING,
                "GPU %d goes on without graphs".formatted(gpu.index()),
                why);
        return null;
    }

    @Override
    public synchronized void finished() {
        unfinished.clear();
    }

    @Override
    public synchronized String unfinished() {
        return String.join(", ", unfinished);
    }

    private void destroy(Graph graph) {
        gpu.giveBack("a graph", () -> JCudaDriver.cuGraphExecDestroy(graph.executable));
    }

    @Override
    public synchronized void close() {
        pending.clear();
        graphs.values().forEach(this::destroy);
        graphs.clear();
    }
}
