package dev.penstock.architecture;

import com.sun.source.tree.CaseLabelTree;
import com.sun.source.tree.CaseTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.DefaultCaseLabelTree;
import com.sun.source.tree.SwitchExpressionTree;
import com.sun.source.tree.SwitchTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreeScanner;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Reads sources for switches over ops: none may have a default, so that a new kind of op makes each
 * of them fail to compile. In compiled classes a default can no longer be seen.
 */
final class SwitchesOverOps {
    private static final String OP = "Op.";

    private SwitchesOverOps() {}

    /** Returns the places below a folder of sources where such a switch has a default. */
    static List<String> withDefault(Path folder) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.walk(folder)) {
            files = all.filter(SwitchesOverOps::mayHaveOne).toList();
        }
        List<String> found = new ArrayList<>();
        if (files.isEmpty()) {
            return found;
        }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null)) {
            var task =
                    (JavacTask)
                            compiler.getTask(
                                    null,
                                    manager,
                                    null,
                                    List.of("-proc:none"),
                                    null,
                                    manager.getJavaFileObjectsFromPaths(files));
            for (CompilationUnitTree unit : task.parse()) {
                new Reader(unit, found).scan(unit, null);
            }
        }
        return found;
    }

    private static boolean mayHaveOne(Path file) {
        try {
            return file.toString().endsWith(".java") && Files.readString(file).contains("case Op.");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static final class Reader extends TreeScanner<Void, Void> {
        private final CompilationUnitTree unit;
        private final List<String> found;

        private Reader(CompilationUnitTree unit, List<String> found) {
            this.unit = unit;
            this.found = found;
        }

        @Override
        public Void visitSwitch(SwitchTree tree, Void nothing) {
            look(tree, tree.getCases());
            return super.visitSwitch(tree, null);
        }

        @Override
        public Void visitSwitchExpression(SwitchExpressionTree tree, Void nothing) {
            look(tree, tree.getCases());
            return super.visitSwitchExpression(tree, null);
        }

        private void look(Tree tree, List<? extends CaseTree> cases) {
            List<CaseLabelTree> labels = new ArrayList<>();
            cases.forEach(each -> labels.addAll(each.getLabels()));
            boolean overOps = labels.stream().anyMatch(label -> label.toString().startsWith(OP));
            if (overOps && labels.stream().anyMatch(DefaultCaseLabelTree.class::isInstance)) {
                String[] lines = tree.toString().strip().split("\n", 2);
                found.add(unit.getSourceFile().getName() + ": " + lines[0]);
            }
        }
    }
}
