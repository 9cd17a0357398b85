package dev.penstock.runtime.chaos;

import dev.penstock.actors.dataplane.aeron.MediaDriverMain;
import dev.penstock.runtime.cluster.LocalCluster;
import dev.penstock.runtime.launch.LinuxVitals;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Seeds and workers on this machine, each behind a relay of its connections, and the hand that
 * strikes them. One that dies is started again at its address.
 */
final class ChaosCluster implements AutoCloseable {
    static final List<String> SEEDS = List.of("seed-1", "seed-2");
    static final List<String> WORKERS = List.of("worker-1", "worker-2", "worker-3");

    private static final Pattern COMPLETE = Pattern.compile("step-\\d{6,18}");
    private static final Duration PRLIMIT = Duration.ofSeconds(5);

    private final Map<String, TcpRelay> relays;
    private final LocalCluster cluster;
    private final List<String> seeds;
    private final Random random;

    private ChaosCluster(
            Map<String, TcpRelay> relays, LocalCluster cluster, List<String> seeds, Random random) {
        this.relays = relays;
        this.cluster = cluster;
        this.seeds = seeds;
        this.random = random;
    }

    /** The kinds of strikes that this machine allows. */
    static List<Strike.Kind> kinds() {
        return Stream.of(Strike.Kind.values())
                .filter(kind -> !kind.fills() || limitsFiles())
                .toList();
    }

    private static boolean limitsFiles() {
        return limitFiles(ProcessHandle.current().pid(), "unlimited").isEmpty();
    }

    /**
     * Starts all; the seeds listen when this returns, the workers are on their way.
     *
     * @param runs where run directories are made, absolute
     * @param log takes what the children say
     * @param random decides where a file is damaged
     */
    static ChaosCluster start(Path runs, Consumer<String> log, Random random) {
        Map<String, TcpRelay> relays = new LinkedHashMap<>();
        Map<String, InetSocketAddress> places = new LinkedHashMap<>();
        List<String> names = Stream.concat(SEEDS.stream(), WORKERS.stream()).toList();
        boolean started = false;
        try {
            for (String name : names) {
                int port = freePort();
                var advertised = new InetSocketAddress("127.0.0." + (2 + places.size()), port);
                relays.put(
                        name, TcpRelay.start(advertised, new InetSocketAddress("127.0.0.1", port)));
                places.put(name, advertised);
            }
            List<String> seeds = SEEDS.stream().map(places::get).map(ChaosCluster::text).toList();
            String all = "cluster.seeds=[\"" + String.join("\",\"", seeds) + "\"]";
            var layout =
                    new LocalCluster.Layout(
                            SEEDS.size(),
                            WORKERS.size(),
                            0,
                            runs,
                            name ->
                                    settings(
                                            Optional.ofNullable(places.get(name)).orElseThrow(),
                                            all),
                            true);
            var cluster = new ChaosCluster(relays, LocalCluster.start(layout, log), seeds, random);
            started = true;
            return cluster;
        } finally {
            if (!started) {
                relays.values().forEach(TcpRelay::close);
            }
        }
    }

    private static List<String> settings(InetSocketAddress advertised, String seeds) {
        return List.of(
                seeds,
                "cluster.port=" + advertised.getPort(),
                "cluster.advertise=\"%s\"".formatted(advertised.getHostString()));
    }

    private static String text(InetSocketAddress place) {
        return place.getHostString() + ":" + place.getPort();
    }

    private static int freePort() {
        try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException("no port is free: " + e.getMessage(), e);
        }
    }

    /** Where clients find it, {@code host:port} of each seed. */
    List<String> seeds() {
        return seeds;
    }

    /**
     * Strikes.
     *
     * @param run whose directory the seeds write
     * @return what was done, for people; empty if there was nothing to strike
     */
    Optional<String> strike(Strike strike, RunDirectory run) {
        return switch (strike.kind()) {
            case KILL_KEEPER ->
                    keeper(run).filter(ProcessHandle::destroyForcibly).map(ChaosCluster::told);
            case KILL_NODE -> kill(strike.node());
            case KILL_DRIVER ->
                    driver().filter(ProcessHandle::destroyForcibly).map(ChaosCluster::told);
            case RESET -> Optional.of(relay(strike.node()).reset() + " connections");
            case CUT -> {
                relay(strike.node()).cut(strike.length());
                yield Optional.of("cut off");
            }
            case FULL_DISK -> keeper(run).flatMap(seed -> fill(seed.pid(), strike.length()));
            case FULL_MEMORY ->
                    driver().flatMap(driver -> fill(driver.pid(), strike.length()))
                            .map(place -> place + alsoKilled(strike.node()));
            case FLIPPED_BIT -> flipBit(run).map(place -> place + alsoKilled(strike.node()));
        };
    }

    private TcpRelay relay(String node) {
        return Optional.ofNullable(relays.get(node)).orElseThrow();
    }

    private Optional<String> kill(String node) {
        return cluster.process(node)
                .filter(ProcessHandle::isAlive)
                .filter(ProcessHandle::destroyForcibly)
                .map(ChaosCluster::told);
    }

    private String alsoKilled(String node) {
        return kill(node).map(", "::concat).orElse("");
    }

    private static String told(ProcessHandle process) {
        return "process " + process.pid();
    }

    private Optional<ProcessHandle> keeper(RunDirectory run) {
        return run.keeper().stream()
                .boxed()
                .flatMap(pid -> cluster.processes().stream().filter(seed -> seed.pid() == pid))
                .filter(ProcessHandle::isAlive)
                .findFirst();
    }

    /** Several workers of a host share one, which is a child of one of them. */
    private Optional<ProcessHandle> driver() {
        return cluster.processes().stream()
                .flatMap(ProcessHandle::descendants)
                .filter(ProcessHandle::isAlive)
                .filter(
                        process ->
                                LinuxVitals.arguments(process)
                                        .contains(MediaDriverMain.class.getName()))
                .findFirst();
    }

    /**
     * No file of the process grows for a while, wherever it is, as if there were no room: that
     * takes no right that a user does not have.
     */
    private Optional<String> fill(long pid, Duration length) {
        if (limitFiles(pid, "1:unlimited").isPresent()) {
            return Optional.empty();
        }
        Thread.ofVirtual()
                .start(
                        () -> {
                            LockSupport.parkNanos(length.toNanos());
                            var _ = limitFiles(pid, "unlimited");
                        });
        return Optional.of("process " + pid);
    }

    /** Why it cannot be done; empty if it was. */
    private static Optional<String> limitFiles(long pid, String limit) {
        try {
            Process process =
                    new ProcessBuilder("prlimit", "--pid", "" + pid, "--fsize=" + limit)
                            .redirectErrorStream(true)
                            .start();
            if (!process.waitFor(PRLIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                process.destroyForcibly();
                return Optional.of("prlimit does not answer");
            }
            return process.exitValue() == 0
                    ? Optional.empty()
                    : Optional.of(
                            new String(
                                            process.getInputStream().readAllBytes(),
                                            StandardCharsets.UTF_8)
                                    .strip());
        } catch (IOException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.of("interrupted");
        }
    }

    private Optional<String> flipBit(RunDirectory run) {
        try {
            Optional<Path> newest = newestCheckpoint(run);
            if (newest.isEmpty()) {
                return Optional.empty();
            }
            List<Path> files = new ArrayList<>();
            try (Stream<Path> listed = Files.list(newest.get())) {
                listed.filter(Files::isRegularFile).forEach(files::add);
            }
            files.sort(Comparator.comparing(Path::toString));
            Path file = files.get(random.nextInt(files.size()));
            try (var open = new RandomAccessFile(file.toFile(), "rw")) {
                long at = random.nextLong(open.length());
                open.seek(at);
                int value = open.read();
                open.seek(at);
                open.write(value ^ (1 << random.nextInt(8)));
                return Optional.of("byte %d of %s".formatted(at, run.path().relativize(file)));
            }
        } catch (IOException e) {
            return Optional.empty(); // the run removed it meanwhile
        }
    }

    /** By its name alone: the run is not to notice that somebody looks. */
    private static Optional<Path> newestCheckpoint(RunDirectory run) throws IOException {
        try (Stream<Path> folders = Files.list(run.checkpoints())) {
            return folders.filter(
                            folder -> COMPLETE.matcher(folder.getFileName().toString()).matches())
                    .max(Comparator.comparing(Path::toString));
        }
    }

    @Override
    public void close() {
        try {
            cluster.close();
        } finally {
            relays.values().forEach(TcpRelay::close);
        }
    }
}
