package dev.penstock;

import java.util.ArrayList;
import java.util.List;

/** What a JVM has to be started with. A program cannot give it to itself. */
final class JavaOptions {
    private static final String VECTOR = "jdk.incubator.vector";
    private static final String INTERNAL = "jdk.internal.misc";

    private JavaOptions() {}

    /**
     * @throws PenstockException naming the options that are missing
     */
    static void require() {
        List<String> missing = new ArrayList<>();
        if (ModuleLayer.boot().findModule(VECTOR).isEmpty()) {
            missing.add("--add-modules " + VECTOR);
        }
        Module base = Object.class.getModule();
        if (!base.isExported(INTERNAL, JavaOptions.class.getModule())) {
            missing.add("--add-exports java.base/%s=ALL-UNNAMED".formatted(INTERNAL));
        }
        if (!missing.isEmpty()) {
            throw new PenstockException(
                    List.of(
                            "java: expected to be started with %s, got no such options; try them before the name of the main class"
                                    .formatted(String.join(" ", missing))),
                    null);
        }
    }
}
