import de.kherud.llama.InferenceParameters;
import de.kherud.llama.LlamaModel;
import de.kherud.llama.LlamaOutput;
import de.kherud.llama.ModelParameters;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The same texts by llama.cpp, as many at once as there are clients; run from its source.
 *
 * <p>Arguments: the model, threads, clients, tokens of a text, and the prompts, which clients take
 * in turn. Prints the tokens of all texts, the seconds for all, and the milliseconds to each text's
 * first token.
 */
final class LlamaPeer {
    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[1]);
        int clients = Integer.parseInt(arguments[2]);
        int tokens = Integer.parseInt(arguments[3]);
        List<String> prompts = List.of(arguments).subList(4, arguments.length);
        var parameters =
                new ModelParameters()
                        .setModel(arguments[0])
                        .setThreads(threads)
                        .setThreadsBatch(threads)
                        .setParallel(clients)
                        .setCtxSize(512 * clients)
                        .setGpuLayers(0)
                        .disableLog();
        try (var model = new LlamaModel(parameters);
                var executor = Executors.newFixedThreadPool(clients)) {
            ask(model, prompts.get(0), tokens, new ArrayList<>()); // a warm-up
            long start = System.nanoTime();
            List<Callable<List<Double>>> work = new ArrayList<>();
            var written = new AtomicLong();
            for (int client = 0; client < clients; client++) {
                int first = client;
                work.add(
                        () -> {
                            List<Double> waits = new ArrayList<>();
                            for (int i = first; i < prompts.size(); i += clients) {
                                written.addAndGet(ask(model, prompts.get(i), tokens, waits));
                            }
                            return waits;
                        });
            }
            List<Future<List<Double>>> all = executor.invokeAll(work);
            double seconds = (System.nanoTime() - start) / 1e9;
            var line = new StringBuilder(written.get() + " " + seconds);
            for (Future<List<Double>> one : all) {
                one.get().forEach(wait -> line.append(' ').append(wait));
            }
            System.out.println(line);
        }
        System.exit(0); // threads of llama.cpp may go on
    }

    private static int ask(LlamaModel model, String prompt, int tokens, List<Double> waits) {
        long start = System.nanoTime();
        int count = 0;
        var request =
                new InferenceParameters(prompt)
                        .setTemperature(1)
                        .setTopK(0)
                        .setTopP(1)
                        .setMinP(0)
                        .setSeed(7)
                        .setNPredict(tokens)
                        .setIgnoreEos(true)
                        .setCachePrompt(false);
        for (LlamaOutput _ : model.generate(request)) {
            if (count++ == 0) {
                waits.add((System.nanoTime() - start) / 1e6);
            }
        }
        return count;
    }
}
