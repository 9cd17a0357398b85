package dev.penstock.runtime.cli;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Commands that start the program in a Java machine of its own, with the flags of this one: what
 * the build packaged if it says so ({@code penstock.packaged}, a module's target directory), as the
 * launcher does, with the cache of classes that those flags name and the first use makes; otherwise
 * this class path.
 */
public final class ForkedJava {
    private static final String PACKAGED = System.getProperty("penstock.packaged", "");
    private static final String CACHE = "-XX:AOTCache";
    private static final AtomicBoolean REHEARSED = new AtomicBoolean();
    private static final int REHEARSAL_MINUTES = 4;

    private ForkedJava() {}

    /**
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
    static void asLaunched() throws IOException {
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
                : PACKAGED + "/penstock-runtime.jar:" + PACKAGED + "/lib/*";
    }

    /** Without the cache, or with half of one, all is the same but slower. */
    private static synchronized void rehearseOnce() throws IOException {
        if (PACKAGED.isEmpty() || REHEARSED.getAndSet(true)) {
            return;
        }
        List<String> command = java();
        command.removeIf(argument -> argument.startsWith(CACHE));
        Path cache = Path.of(PACKAGED, "tests.aot");
        Files.deleteIfExists(cache);
        Path folder = Files.createTempDirectory(Path.of(PACKAGED), "rehearsal-");
        command.addAll(List.of(CACHE + "Output=" + cache, "-cp", classPath()));
        command.addAll(List.of(Rehearsal.class.getName(), folder.toString()));
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
