package dev.penstock.runtime.cli;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

/**
 * Commands that start the program in a Java machine of its own, with the flags of this one: what
 * the build packaged if it says so ({@code penstock.packaged}, a module's target directory), as the
 * launcher does, with the archive of classes that those flags name and the first use in a build
 * makes; otherwise this class path.
 *
 * <p>The archive is an older kind than the launcher's: it has the classes of lambdas as well, of
 * which a process that lives for seconds makes thousands, and no profile that has hot methods
 * compiled early.
 */
public final class ForkedJava {
    private static final String PACKAGED = System.getProperty("penstock.packaged", "");
    private static final String JAR = "penstock-runtime.jar";
    private static final String CACHE = "-XX:SharedArchiveFile=";
    private static final AtomicBoolean REHEARSED = new AtomicBoolean();
    private static final int REHEARSAL_MINUTES = 4;

    /** An archive needs the classes, and no kernel that becomes hot. */
    private static final List<String> SMALL =
            List.of("model.context=16", "model.width=16", "batch={sequences=2,micro-batches=2}");

    private ForkedJava() {}

    /**
     * Returns the start of a command line.
     *
     * @param flags more of them for the Java machine
     */
    public static List<String> command(String... flags) throws IOException {
        List<String> command = new ArrayList<>();
        // a shell may have started this process with interrupts ignored, which a child inherits
        command.addAll(List.of("env", "--default-signal=INT"));
        rehearseOnce();
        command.addAll(java());
        command.addAll(List.of(flags));
        command.addAll(List.of("-cp", classPath(), Main.class.getName()));
        return command;
    }

    /** Lets processes that the program starts from within this one begin as its own do. */
    public static void asLaunched() throws IOException {
        rehearseOnce();
        System.setProperty("java.class.path", classPath());
    }

    private static List<String> java() {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(argument -> !argument.startsWith("-javaagent"))
                .forEach(command::add);
        return command;
    }

    private static String classPath() {
        return PACKAGED.isEmpty()
                ? System.getProperty("java.class.path")
                : PACKAGED + "/" + JAR + ":" + PACKAGED + "/lib/*";
    }

    /**
     * Makes the archive unless this build's is there: test machines that run side by side share it,
     * and one makes it while the others wait. Without it, or with half of one, all is the same but
     * slower.
     */
    private static synchronized void rehearseOnce() throws IOException {
        if (PACKAGED.isEmpty() || REHEARSED.getAndSet(true)) {
            return;
        }
        Path cache = Path.of(PACKAGED, "tests.jsa");
        Path lock = Path.of(PACKAGED, "tests.jsa.lock");
        try (FileChannel file = FileChannel.open(lock, CREATE, WRITE);
                FileLock _ = file.lock()) {
            if (!isOfThisBuild(cache)) {
                rehearse(cache);
            }
        }
    }

    private static boolean isOfThisBuild(Path cache) throws IOException {
        if (!Files.exists(cache)) {
            return false;
        }
        FileTime made = Files.getLastModifiedTime(cache);
        try (Stream<Path> lib = Files.list(Path.of(PACKAGED, "lib"))) {
            Stream<Path> jars = Stream.concat(Stream.of(Path.of(PACKAGED, JAR)), lib);
            for (Path jar : jars.toList()) {
                if (Files.getLastModifiedTime(jar).compareTo(made) > 0) {
                    return false;
                }
            }
        }
        return true;
    }

    private static void rehearse(Path cache) throws IOException {
        List<String> command = java();
        command.removeIf(argument -> argument.startsWith(CACHE));
        Files.deleteIfExists(cache);
        Path folder = Files.createTempDirectory(Path.of(PACKAGED), "rehearsal-");
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:ArchiveClassesAtExit=" + cache));
        command.addAll(List.of("-cp", classPath()));
        command.addAll(List.of(Rehearsal.class.getName(), folder.toString()));
        SMALL.forEach(setting -> command.addAll(List.of("--set", setting)));
        Process rehearsal =
                new ProcessBuilder(command)
                        .redirectErrorStream(true)
                        .redirectOutput(Path.of(PACKAGED, "rehearsal.txt").toFile())
                        .start();
        try {
            rehearsal.waitFor(REHEARSAL_MINUTES, TimeUnit.MINUTES);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException(e);
        } finally {
            rehearsal.destroyForcibly();
        }
    }
}
