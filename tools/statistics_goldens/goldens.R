# SPDX-License-Identifier: Apache-2.0
# What R says of tests/data/statistics/inputs.json, into tests/data/statistics/r.json. How to run: see inputs.py.
suppressMessages({ library(coin); library(exactRankTests); library(jsonlite); library(nlme); library(lme4); library(emmeans) })

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

# Whole numbers in the ratio of van Elteren's weights.
weights_of <- function(sizes) {
  gcd <- function(a, b) if (b == 0) a else gcd(b, a %% b)
  multiple <- Reduce(function(a, b) a / gcd(a, b) * b, sizes + 1)
  multiple / (sizes + 1)
}

of_strata <- function(case) {
  d <- data.frame(y = case$values, g = factor(case$groups), s = factor(case$strata))
  parts <- split(d, d$s)
  kept <- parts[sapply(parts, function(part) nrow(part) > 2)]
  weights <- weights_of(sapply(kept, nrow))
  scored <- do.call(rbind, Map(function(part, w) transform(part, score = round(2 * w * rank(y))), kept, weights))
  test <- independence_test(score ~ g | s, data = scored, distribution = exact(algorithm = "shift"))
  u <- sapply(kept, function(part) {
    n1 <- sum(part$g == 0); (sum(rank(part$y)[part$g == 0]) - n1 * (n1 + 1) / 2) / (nrow(part) + 1)
  })
  add(case$id, "stratified_rank_sum", coin_name, p = as.numeric(pvalue(test)), statistic = sum(u))
  if (!grepl("-paired-", case$id)) return()
  differences <- lapply(kept, function(part) part$y[part$g == 0] - part$y[part$g == 1])
  weights <- weights_of(lengths(differences))
  rows <- do.call(rbind, Map(function(diff, w) data.frame(diff, rank = rank(abs(diff)) * 2 * w, own = rank(abs(diff)) / (length(diff) + 1)),
                             differences, weights))
  signed <- rows[rows$diff != 0, ]; n <- nrow(signed)
  pairs <- data.frame(score = round(c(ifelse(signed$diff > 0, signed$rank, 0), ifelse(signed$diff < 0, signed$rank, 0))),
                      side = factor(rep(1:2, each = n)), block = factor(rep(seq_len(n), 2)))
  test <- independence_test(score ~ side | block, data = pairs, distribution = exact(algorithm = "shift"))
  add(case$id, "stratified_signed_rank", coin_name, p = as.numeric(pvalue(test)), statistic = sum(signed$own[signed$diff > 0]))
}

of_factorial <- function(case) {
  options(contrasts = c("contr.sum", "contr.poly"))
  k <- case$factors
  d <- as.data.frame(matrix(case$levels, ncol = k, byrow = TRUE)); names(d) <- paste0("f", seq_len(k)); d[] <- lapply(d, factor)
  d$y <- case$values; d$block <- factor(case$blocks)
  right <- paste0("(", paste(names(d)[seq_len(k)], collapse = " + "), ")^2")
  terms <- attr(terms(as.formula(paste("~", right))), "term.labels")
  # nlme has denominator degrees of freedom by containment. Its optimizer and lmer's stop at 1e-6, so the likelihood of
  # lme4 is maximized once more, closer.
  outer <- lme(as.formula(paste("y ~", right)), random = ~1 | block, data = d)
  table <- anova(outer, type = "marginal")[terms, ]
  parts <- lFormula(as.formula(paste("y ~", right, "+ (1 | block)")), data = d)
  deviance <- do.call(mkLmerDevfun, parts)
  best <- optimize(deviance, c(0, 20), tol = 1e-13)
  if (deviance(0) <= best$objective) best <- list(minimum = 0, objective = deviance(0))
  deviance(best$minimum)
  fit <- mkMerMod(environment(deviance), list(par = best$minimum, fval = best$objective, conv = 0, message = ""), parts$reTrms, fr = parts$fr)
  column <- attr(parts$X, "assign")
  f <- sapply(seq_along(terms), function(i) {
    own <- column == i
    drop(fixef(fit)[own] %*% solve(as.matrix(vcov(fit))[own, own], fixef(fit)[own])) / sum(own)
  })
  lme4_name <- paste("lme4", packageVersion("lme4"))
  add(case$id, "mixed_model_f", lme4_name, values = I(f))
  add(case$id, "mixed_model_p", paste(lme4_name, "and nlme", packageVersion("nlme")),
      values = I(pf(f, table$numDF, table$denDF, lower.tail = FALSE)))
  add(case$id, "mixed_model_variances", lme4_name, values = I(as.data.frame(VarCorr(fit))$vcov))
  contrast <- as.data.frame(pairs(emmeans(fit, "f1", lmer.df = "asymptotic", data = d), adjust = "none"))[1, ]
  half <- qt(0.975, table$denDF[1]) * contrast$SE
  add(case$id, "mixed_model_difference", paste("emmeans", packageVersion("emmeans")), estimate = contrast$estimate,
      low = contrast$estimate - half, high = contrast$estimate + half)
  plain <- lm(as.formula(paste("y ~", right)), data = d)
  add(case$id, "linear_model_f", r_name, values = I(drop1(plain, . ~ ., test = "F")[terms, "F value"]))
  contrast <- as.data.frame(confint(pairs(emmeans(plain, "f1"), adjust = "none")))[1, ]
  add(case$id, "linear_model_difference", paste("emmeans", packageVersion("emmeans")), estimate = contrast$estimate,
      low = contrast$lower.CL, high = contrast$upper.CL)
  effects <- predict(plain, type = "terms")
  aligned <- sapply(terms, function(term) {
    data <- d; data$y <- rank(round(residuals(plain) + effects[, term], 10))
    drop1(lm(as.formula(paste("y ~", right)), data = data), . ~ ., test = "F")[term, "F value"]
  })
  add(case$id, "aligned_rank_f", r_name, values = I(unname(aligned)))
}

for (case in inputs) {
  handler <- list(pairs = of_pairs, two = of_two, blocks = of_blocks, groups = of_groups, family = of_family,
                  strata = of_strata, factorial = of_factorial)[[case$kind]]
  if (!is.null(handler)) handler(case)
}
lines <- sapply(found, function(one) toJSON(one, auto_unbox = TRUE, digits = NA))
writeLines(c("[", paste0(lines, c(rep(",", length(lines) - 1), "")), "]"), file.path(folder, "r.json"))
cat(length(found), "expectations\n")
