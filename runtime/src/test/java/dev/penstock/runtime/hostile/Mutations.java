package dev.penstock.runtime.hostile;

import java.util.List;
import java.util.SplittableRandom;

/** Texts that were good once, damaged as files and peers damage them. */
final class Mutations {
    private static final List<String> SPLINTERS =
            List.of(
                    "",
                    "\0",
                    "\"",
                    "{",
                    "}",
                    "[",
                    "]",
                    "=",
                    ":",
                    ",",
                    "\n",
                    "\\",
                    "${",
                    "${?",
                    "#",
                    "..",
                    "-",
                    "+=",
                    "1e999",
                    "NaN",
                    "-1",
                    "99999999999999999999",
                    "2147483647",
                    "include \"/etc/passwd\"",
                    "null",
                    "'",
                    "`",
                    "\uFFFF",
                    "\uD800",
                    "é",
                    "%s",
                    "/",
                    ";",
                    "|",
                    "@",
                    "*",
                    "(",
                    ")",
                    "0x",
                    "1 TiB",
                    "9223372036854775807 s");

    private final SplittableRandom random;

    Mutations(long seed) {
        this.random = new SplittableRandom(seed);
    }

    /** One to three damages. */
    String of(String text) {
        String damaged = text;
        for (int i = 1 + random.nextInt(3); i > 0; i--) {
            damaged = once(damaged);
        }
        return damaged;
    }

    private String once(String text) {
        int from = random.nextInt(text.length() + 1);
        int to = Math.min(text.length(), from + random.nextInt(12));
        String head = text.substring(0, from);
        return switch (random.nextInt(6)) {
            case 0 -> head; // cut
            case 1 -> head + text.substring(to); // a hole
            case 2 -> head + splinter() + text.substring(to);
            case 3 ->
                    head
                            + text.substring(from, to).repeat(2 + random.nextInt(5))
                            + text.substring(to);
            case 4 -> head + noise() + text.substring(to);
            default -> {
                String line =
                        splinter() + text.lines().skip(random.nextInt(20)).findFirst().orElse("");
                yield head + "\n" + line + "\n" + text.substring(from);
            }
        };
    }

    private String splinter() {
        return SPLINTERS.get(random.nextInt(SPLINTERS.size()));
    }

    private String noise() {
        StringBuilder noise = new StringBuilder();
        for (int i = random.nextInt(8); i >= 0; i--) {
            noise.append((char) random.nextInt(random.nextInt(8) == 0 ? 0x10000 : 128));
        }
        return noise.toString();
    }
}
