"""Operations that Spark does where the rows are."""
