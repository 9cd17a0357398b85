package dev.penstock.systemtests.support;

/** Keys of {@code model} that make a run's tiny model one of another family. */
public final class TinyFamily {
    private TinyFamily() {}

    /** Returns the keys, besides those that a run's configuration has. */
    public static String of(String family) {
        return switch (family) {
            case "llama", "qwen2" ->
                    "family=%s, heads=4, key-heads=2, hidden=52, tied=%s"
                            .formatted(family, family.equals("qwen2"));
            case "mistral" ->
                    "family=mistral, heads=4, key-heads=2, hidden=52, tied=false,"
                            + " attention=[\"local(12)\"]";
            case "qwen3" ->
                    "family=qwen3, heads=4, key-heads=2, head-size=12, hidden=52, tied=false";
            case "retnet" -> "family=retnet, heads=4, hidden=52, tied=false";
            case "retnet-mixed" ->
                    "family=retnet, heads=4, hidden=52, tied=false,"
                            + " layers=[retention, \"local(12)\", dense]";
            case "gpt3" -> "attention=[dense, \"local(12)\"], activation=gelu, hidden=80";
            case "bert", "megatron-bert" ->
                    "family=%s, heads=4, hidden=52, vocabulary=257".formatted(family);
            default -> throw new IllegalArgumentException("no family " + family);
        };
    }
}
