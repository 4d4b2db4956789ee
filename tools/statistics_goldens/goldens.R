# SPDX-License-Identifier: Apache-2.0
# What R says of tests/data/statistics/inputs.json, into tests/data/statistics/r.json. How to run: see inputs.py.
suppressMessages({ library(coin); library(exactRankTests); library(jsonlite) })

folder <- "tests/data/statistics"
inputs <- fromJSON(file.path(folder, "inputs.json"), simplifyDataFrame = FALSE)
found <- list()
add <- function(id, test, oracle, ...) found[[length(found) + 1]] <<- list(id = id, test = test, oracle = oracle, ...)
coin_name <- paste("coin", packageVersion("coin"))
exact_name <- paste("exactRankTests", packageVersion("exactRankTests"))
r_name <- paste("R", getRversion())

of_pairs <- function(case) {
  x <- case$first; y <- case$second; d <- x - y; n <- length(d)
  sides <- function(zero) pvalue(wilcoxsign_test(x ~ y, distribution = "exact", zero.method = zero))
  nonzero <- sum(d != 0)
  if (nonzero <= 200) {
    if (n > 1) {
      add(case$id, "signed_rank_pratt", coin_name, p = as.numeric(sides("Pratt")))
      if (nonzero > 1) add(case$id, "signed_rank_drop", coin_name, p = as.numeric(sides("Wilcoxon")))
    }
    add(case$id, "signed_rank_drop", exact_name, p = wilcox.exact(x, y, paired = TRUE, exact = TRUE)$p.value)
  } else {
    plain <- wilcox.test(x, y, paired = TRUE, exact = FALSE, correct = TRUE)
    add(case$id, "signed_rank_drop", r_name, p = plain$p.value, statistic = unname(plain$statistic))
  }
  walsh <- outer(d, d, "+") / 2
  add(case$id, "paired_shift", r_name, estimate = median(walsh[!lower.tri(walsh)]))
  if (all(d != 0) && !anyDuplicated(abs(d)) && n <= 150) {
    test <- suppressWarnings(wilcox.test(x, y, paired = TRUE, exact = TRUE, conf.int = TRUE))
    add(case$id, "paired_interval", r_name, estimate = unname(test$estimate), low = test$conf.int[1], high = test$conf.int[2],
        confidence = attr(test$conf.int, "conf.level"), statistic = unname(test$statistic))
  }
  of_correlation(case, x, y)
}

of_correlation <- function(case, x, y) {
  n <- length(x)
  if (n < 3 || length(unique(x)) < 2 || length(unique(y)) < 2) return()
  tied <- anyDuplicated(x) || anyDuplicated(y)
  rho <- suppressWarnings(cor.test(x, y, method = "spearman", exact = !tied && n <= 9))
  if (!tied && n <= 9) {
    add(case$id, "spearman", r_name, estimate = unname(rho$estimate), p = rho$p.value)
  } else {
    add(case$id, "spearman", r_name, estimate = unname(rho$estimate))
  }
  exact <- !tied && n <= 50
  tau <- suppressWarnings(cor.test(x, y, method = "kendall", exact = exact))
  if (exact || n > 8) {
    add(case$id, "kendall", r_name, estimate = unname(tau$estimate), p = tau$p.value)
  } else {
    add(case$id, "kendall", r_name, estimate = unname(tau$estimate))
  }
  tied <- anyDuplicated(x) > 0
  exact <- !tied && n <= 50
  if (!exact && n <= 8) return()
  trend <- suppressWarnings(cor.test(seq_along(x), x, method = "kendall", exact = exact, continuity = !exact))
  add(case$id, "mann_kendall", paste(r_name, "cor.test"), estimate = unname(trend$estimate), p = trend$p.value)
}

of_two <- function(case) {
  x <- case$first; y <- case$second; m <- length(x); n <- length(y)
  group <- factor(rep(1:2, c(m, n)))
  exact <- m * n * min(m, n) * (m + n) <= 2e7
  if (exact) {
    add(case$id, "rank_sum", coin_name, p = as.numeric(pvalue(wilcox_test(c(x, y) ~ group, distribution = "exact"))))
    add(case$id, "rank_sum", exact_name, p = wilcox.exact(x, y, exact = TRUE)$p.value)
  } else {
    plain <- wilcox.test(x, y, exact = FALSE, correct = TRUE)
    add(case$id, "rank_sum", r_name, p = plain$p.value, statistic = unname(plain$statistic))
  }
  add(case$id, "a12", r_name, estimate = mean(outer(x, y, ">") + 0.5 * outer(x, y, "==")))
  add(case$id, "unpaired_shift", r_name, estimate = median(outer(x, y, "-")))
  if (exact && !anyDuplicated(c(x, y))) {
    test <- suppressWarnings(wilcox.test(x, y, exact = TRUE, conf.int = TRUE))
    add(case$id, "unpaired_interval", r_name, estimate = unname(test$estimate), low = test$conf.int[1],
        high = test$conf.int[2], statistic = unname(test$statistic))
  }
}

of_blocks <- function(case) {
  test <- friedman.test(matrix(case$values, ncol = case$sizes[1], byrow = TRUE))
  add(case$id, "friedman", r_name, statistic = unname(test$statistic), p = test$p.value)
  k <- case$sizes[1]; n <- length(case$sizes)
  means <- rowMeans(apply(matrix(case$values, ncol = k, byrow = TRUE), 1, rank))
  apart <- abs(combn(means, 2, diff)) / sqrt(k * (k + 1) / (12 * n))
  add(case$id, "nemenyi", paste(r_name, "ptukey"), values = I(ptukey(apart, k, Inf, lower.tail = FALSE)))
}

of_groups <- function(case) {
  test <- kruskal.test(case$values, factor(rep(seq_along(case$sizes), case$sizes)))
  add(case$id, "kruskal_wallis", r_name, statistic = unname(test$statistic), p = test$p.value)
}

of_family <- function(case) {
  for (method in c("holm", "bonferroni", "BH")) {
    add(case$id, paste0("adjusted_", tolower(method)), r_name, values = I(p.adjust(case$values, method)))
  }
}

for (case in inputs) {
  handler <- list(pairs = of_pairs, two = of_two, blocks = of_blocks, groups = of_groups, family = of_family)[[case$kind]]
  if (!is.null(handler)) handler(case)
}
lines <- sapply(found, function(one) toJSON(one, auto_unbox = TRUE, digits = NA))
writeLines(c("[", paste0(lines, c(rep(",", length(lines) - 1), "")), "]"), file.path(folder, "r.json"))
cat(length(found), "expectations\n")
