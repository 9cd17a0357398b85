package dev.penstock.cuda.gpu;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import jcuda.CudaException;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * Measures on the GPU how long each kind of work takes: an event goes to the stream before and
 * after each kernel, product and clearing. The events themselves cost a microsecond or two per
 * kernel, so a step takes longer than without. What the GPU does between a kernel's end and the
 * next one's begin (it waits for the host, or copies) is told as {@value #BETWEEN}.
 *
 * <p>Switched on for a process by {@code -Dpenstock.gpu.times=FILE}: each device appends its lines
 * {@code name TAB launches TAB milliseconds} when it closes.
 */
final class KernelTimes implements StreamCollector {
    private static final System.Logger LOG = System.getLogger(KernelTimes.class.getName());
    private static final String PROPERTY = "penstock.gpu.times";
    private static final String BETWEEN = "(between kernels)";

    private final GpuContext gpu;
    private final Path file;

    /** Two per piece of work that is given and not yet waited for. */
    private final List<CUevent> events = new ArrayList<>();

    private final List<String> given = new ArrayList<>();
    private final Map<String, Total> totals = new TreeMap<>();
    private final float[] millis = new float[1];

    private static final class Total {
        long launches;
        double millis;
    }

    private KernelTimes(GpuContext gpu, Path file) {
        this.gpu = gpu;
        this.file = file;
    }

    /** Null unless the process is asked to measure. */
    static @Nullable KernelTimes ifAsked(GpuContext gpu) {
        String file = System.getProperty(PROPERTY, "");
        return file.isEmpty() ? null : new KernelTimes(gpu, Path.of(file));
    }

    @Override
    public synchronized void add(StreamWork work, long[] numbers, int count) {
        int at = 2 * given.size();
        try {
            gpu.bind();
            while (events.size() < at + 2) {
                CUevent event = new CUevent();
                JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DEFAULT);
                events.add(event);
            }
            JCudaDriver.cuEventRecord(events.get(at), gpu.stream());
            work.give(numbers, 0);
            JCudaDriver.cuEventRecord(events.get(at + 1), gpu.stream());
            given.add(work.describe(numbers, 0));
        } catch (CudaException e) {
            throw GpuFailure.of("measuring %s on GPU %d".formatted(work.name(), gpu.index()), e);
        }
    }

    /** Nothing waits here. */
    @Override
    public void flush() {}

    @Override
    public synchronized void finished() {
        if (given.isEmpty()) {
            return;
        }
        try {
            // what another thread gave since the wait has its end still before it
            JCudaDriver.cuEventSynchronize(events.get(2 * given.size() - 1));
            for (int i = 0; i < given.size(); i++) {
                count(given.get(i), 2 * i, 2 * i + 1);
                if (i > 0) {
                    count(BETWEEN, 2 * i - 1, 2 * i);
                }
            }
        } catch (CudaException e) {
            throw GpuFailure.of("reading times of GPU " + gpu.index(), e);
        } finally {
            given.clear();
        }
    }

    private void count(String name, int from, int to) {
        JCudaDriver.cuEventElapsedTime(millis, events.get(from), events.get(to));
        Total total = totals.computeIfAbsent(name, _ -> new Total());
        total.launches++;
        total.millis += millis[0];
    }

    @Override
    public synchronized String unfinished() {
        Set<String> names = new LinkedHashSet<>(given);
        return String.join(", ", names);
    }

    @Override
    public synchronized void close() {
        List<String> lines =
                totals.entrySet().stream()
                        .sorted(
                                Comparator.comparingDouble(
                                        (Map.Entry<String, Total> each) -> -each.getValue().millis))
                        .map(KernelTimes::line)
                        .toList();
        try {
            Files.write(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException | UncheckedIOException e) {
            LOG.log(System.Logger.Level.WARNING, "telling kernels' times in " + file, e);
        }
        for (CUevent event : events) {
            gpu.giveBack("an event", () -> JCudaDriver.cuEventDestroy(event));
        }
        events.clear();
        totals.clear();
    }

    private static String line(Map.Entry<String, Total> each) {
        Total total = each.getValue();
        return String.format(
                Locale.ROOT, "%s\t%d\t%.3f", each.getKey(), total.launches, total.millis);
    }
}
